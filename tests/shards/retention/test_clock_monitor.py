"""Retention stops while the clock cannot be trusted, which is reported."""

from typing import Any

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.retention.clock_monitor import ClockMonitor
from tests.commitlog.records import NOW, append, opened, some_records, write
from tests.shards.bus.world import Hand

YEAR_US = 365 * 86_400 * 1_000_000


class Pool:
    def submit(self, job: Any, done: Any, lane: int = 0) -> None:
        done(job(), None)


def test_a_clock_that_jumps_is_reported_with_its_seconds() -> None:
    hand = Hand()
    hand.now_us = NOW
    store = opened(SimulatedFiles())
    append(store.own[0], some_records(3, 0))
    write(store.own[0])
    monitor = ClockMonitor(store, Pool(), hand, hand)
    assert monitor.look(NOW + 1_000_000, hand.monotonic + 1.0) == NOW + 1_000_000
    assert not hand.events
    monitor.look(NOW + YEAR_US, hand.monotonic + 2.0)
    names = [name for name, _ in hand.events]
    assert names[0] == "clock.jumped" and hand.events[0][1]["seconds"] > 86_400
