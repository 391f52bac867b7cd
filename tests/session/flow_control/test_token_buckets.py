"""Token buckets by name. Time is a number."""

from rumq.session.flow_control.rate_limits import BURST_SECONDS
from rumq.session.flow_control.token_buckets import PRUNED_AT, TokenBuckets

RATE = 100.0


def test_a_burst_is_free_and_what_is_beyond_it_is_waited_for() -> None:
    buckets = TokenBuckets()
    buckets.spend("a", RATE * BURST_SECONDS, RATE, 10.0)
    assert buckets.wait("a", 10.0) == 0.0
    buckets.spend("a", 50, RATE, 10.0)
    assert buckets.wait("a", 10.0) == 0.5
    assert buckets.wait("a", 10.25) == 0.25
    assert buckets.wait("a", 11.0) == 0.0
    assert buckets.wait("b", 10.0) == 0.0, "another bucket"


def test_over_a_long_time_no_more_than_the_rate_is_spent() -> None:
    buckets, now, spent = TokenBuckets(), 0.0, 0.0
    for _ in range(1000):
        now += 0.01
        if not buckets.wait("a", now):
            buckets.spend("a", 7, RATE, now)
            spent += 7
    assert RATE * 10 <= spent <= RATE * (10 + BURST_SECONDS) + 7


def test_without_a_rate_there_is_no_limit() -> None:
    buckets = TokenBuckets()
    buckets.spend("a", 1 << 40, 0, 1.0)
    assert buckets.wait("a", 1.0) == 0.0 and len(buckets) == 0


def test_full_buckets_are_forgotten() -> None:
    buckets = TokenBuckets()
    for number in range(10 * PRUNED_AT):
        buckets.spend(str(number), 1, RATE, float(number))
        assert len(buckets) < PRUNED_AT
