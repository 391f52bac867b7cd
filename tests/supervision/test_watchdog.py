"""The watchdog: the service manager hears of a broker as long as all its loops turn."""

import math
from collections.abc import Callable

import pytest

from rumq.supervision.watchdog import Heartbeat, ShardWatch, watchdog_seconds


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, 0.0),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, 0.0),  # it watches who started us
        ({"WATCHDOG_USEC": "soon"}, 0.0),
        ({"WATCHDOG_USEC": "-5"}, 0.0),
    ],
)
def test_the_manager_says_whom_it_watches_and_how_often(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], seconds: float
) -> None:
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert watchdog_seconds(7) == seconds


def test_a_heart_beats_at_once_and_four_times_in_the_managers_time() -> None:
    calls: list[tuple[float, Callable[[], None]]] = []
    beats: list[str] = []
    Heartbeat(lambda *call: calls.append(call), 20.0, lambda: beats.append("beat")).begin()
    assert beats == ["beat"]
    for number in (2, 3):
        ((seconds, call),) = calls
        assert seconds == 5.0
        calls.clear()
        call()
        assert len(beats) == number


def test_a_heart_beats_on_after_a_beat_that_failed() -> None:
    calls: list[Callable[[], None]] = []

    def beat() -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        Heartbeat(lambda seconds, call: calls.append(call), 20.0, beat).begin()
    assert calls


class Told:
    """pings: times that the manager was notified; late: (shard, seconds of silence)"""

    def __init__(self, seconds: float) -> None:
        self.pings = 0
        self.late: list[tuple[int, float]] = []
        self.watch = ShardWatch(seconds, self._ping, lambda *what: self.late.append(what))

    def _ping(self) -> None:
        self.pings += 1


def test_nobody_is_notified_without_a_watchdog() -> None:
    told = Told(0.0)
    assert told.watch.next_check == math.inf
    told.watch.check(1000.0)
    assert told.pings == 0


def test_the_manager_hears_of_us_four_times_in_its_time_while_no_shard_is_silent() -> None:
    told = Told(20.0)
    for now in (100, 101, 104, 105, 109, 110):
        told.watch.heard(0, now)
        told.watch.heard(1, now)
        told.watch.check(now)
    assert told.pings == 3 and told.watch.next_check == 115.0 and not told.late


def test_a_silent_shard_ends_the_notifications_until_it_is_heard_again() -> None:
    told = Told(20.0)
    told.watch.heard(0, 100.0)
    told.watch.heard(1, 100.0)
    for now in (105.0, 110.0):
        told.watch.heard(0, now)
        told.watch.check(now)
    assert told.pings == 2, "half of the time is allowed"
    for now in (115.0, 120.0):
        told.watch.heard(0, now)
        told.watch.check(now)
    assert told.pings == 2 and told.late == [(1, 15.0)], "told once"
    told.watch.heard(1, 121.0)
    told.watch.check(125.0)
    assert told.pings == 3


def test_a_shard_that_died_or_recovers_is_silent_for_good_reason() -> None:
    told = Told(20.0)
    told.watch.check(100.0)
    assert told.pings == 1, "nobody was heard yet: all recover"
    told.watch.heard(0, 100.0)
    told.watch.ended(0)
    told.watch.check(200.0)
    assert told.pings == 2 and not told.late
