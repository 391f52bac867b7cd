"""A replay waits for its slowest token bucket. The time is an argument."""

from collections.abc import Callable

from rumq.session.flow_control.rate_limits import Bucket, Rate
from rumq.session.flow_control.replay_throttle import ReplayThrottle


def test_a_replay_stops_until_its_slowest_bucket_has_refilled() -> None:
    now, calls, waits = 0.0, [], []
    buckets = (Bucket(Rate(0, 100), 0.0), Bucket(Rate(0, 50), 0.0))

    def later(seconds: float, call: Callable[[], None]) -> None:
        waits.append((seconds, call))

    throttle = ReplayThrottle(buckets, lambda: now, later, lambda: calls.append(now))
    throttle.spend(1, 100)
    assert not throttle.is_spent
    throttle.spend(1, 100)
    assert throttle.is_spent
    throttle.spend(1, 50)  # what was on its way
    [(seconds, call)] = waits
    assert seconds == 2.0
    now = 2.0
    call()
    assert calls == [2.0] and not throttle.is_spent
