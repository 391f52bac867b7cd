"""Refusals to one address are delayed longer each time. The time is an argument."""

from rumq.auth.login_backoff import ADDRESSES_MAX, LoginBackoff


def test_the_delay_doubles_with_each_failure_and_is_forgotten() -> None:
    backoff = LoginBackoff(0.25, 8.0)
    waits = [backoff.failed("a", 0.0) for _ in range(8)]
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert backoff.failed("b", 0.0) == 0.25
    assert backoff.failed("a", 3600.0) < 0.26


def test_a_maximum_of_0_delays_nothing() -> None:
    backoff = LoginBackoff(0.25, 0.0)
    assert [backoff.failed("a", 0.0) for _ in range(3)] == [0.0] * 3


def test_memory_is_bounded_and_the_latest_addresses_are_kept() -> None:
    backoff = LoginBackoff()
    for number in range(ADDRESSES_MAX + 5):
        backoff.failed(f"a{number}", 0.0)
    assert len(backoff) == ADDRESSES_MAX
    assert backoff.failed("a0", 0.0) == 0.25 and backoff.failed(f"a{ADDRESSES_MAX}", 0.0) == 0.5
