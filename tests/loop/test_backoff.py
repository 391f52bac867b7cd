"""The wait before a restart grows with every death in a row, up to a bound."""

from rumq.loop.backoff import Backoff


def test_each_quick_death_in_a_row_waits_longer_up_to_the_last_wait() -> None:
    backoff = Backoff((0.0, 1.0, 5.0), steady_seconds=60.0)
    assert [backoff.died(1.0) for _ in range(5)] == [0.0, 1.0, 5.0, 5.0, 5.0]
    assert backoff.deaths == 5


def test_a_process_that_ran_long_enough_begins_again_with_the_first_wait() -> None:
    backoff = Backoff((0.0, 1.0, 5.0), steady_seconds=60.0)
    backoff.died(1.0)
    backoff.died(1.0)
    assert backoff.died(60.0) == 0.0 and backoff.deaths == 1
    assert backoff.died(59.9) == 1.0
