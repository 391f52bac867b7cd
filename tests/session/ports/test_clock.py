"""The time of a turn is as exact in C as in Python."""

from rumq.session.ports.clock import TurnClock


def test_times_come_out_as_they_went_in() -> None:
    """µs until the year 2262, and a machine that is up for years."""
    clock = TurnClock((1 << 63) - 1, 1e8 + 2**-20)
    assert (clock.now_us, clock.monotonic) == ((1 << 63) - 1, 1e8 + 2**-20)
    clock.now_us, clock.monotonic = 5, 0.5
    assert (clock.now_us, clock.monotonic) == (5, 0.5)


def test_before_the_first_turn_it_is_the_beginning() -> None:
    assert (TurnClock().now_us, TurnClock().monotonic) == (0, 0.0)
