"""Segments past their retention are removed, unless something needs them."""

from collections.abc import Callable
from typing import Any

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.retention.bounds import RetentionBounds
from rumq.shards.retention.segment_removal import SegmentRemover
from tests.commitlog.records import NOW, append, index, opened, some_records, write
from tests.shards.bus.world import Hand


class Pool:
    def submit(self, job: Any, done: Any, lane: int = 0) -> None:
        done(job(), None)


class World:
    """A partition with more finished segments than it may keep. needed: from which lsn on records are needed"""

    def __init__(self, *, needed: int | None = None, sessions_bytes_max: int = 1 << 30) -> None:
        self.hand = Hand()
        self.hand.now_us = NOW
        self.store = opened(SimulatedFiles(), segment_bytes_max=12_000, retention_bytes_max=20_000)
        self.partition = self.store.own[0]
        for first in range(0, 100, 10):
            append(self.partition, some_records(10, first))
            write(self.partition)
        index(self.partition)
        self.journal_needs: int | None = None
        self.sessions_need = needed
        self.counted: list[tuple[int, int]] = []
        self.removed: list[tuple[int, str]] = []
        bounds = RetentionBounds(self, self, None, Pool())
        self.remover = SegmentRemover(
            self.store, bounds, self.hand, Pool(), self.hand, sessions_bytes_max=sessions_bytes_max,
            roll=lambda partition: None, before_removal=self._count,
        )  # fmt: skip
        self.remover.on_removed.append(lambda removal, records, size, why: self.removed.append((records, why)))

    def _count(self, partition: int, lsn: int, then: Callable[[], None]) -> None:
        self.counted.append((partition, lsn))
        then()

    def keep_lsn(self, index: int) -> int | None:
        return self.journal_needs

    def wanted_lsn(self, index: int, here: int | None = None) -> int | None:
        return self.sessions_need

    def take_removal(self) -> None:
        return None

    def tell_needs(self, wanted_lsn: Callable[[int], int | None]) -> None: ...


def test_segments_beyond_the_size_go_once_losses_are_counted() -> None:
    world = World()
    world.remover.look()
    first = world.partition.first_lsn
    assert first > 0 and world.counted == [(0, first)] and world.removed == [(first, "retention")]
    ((name, fields),) = world.hand.events
    assert name == "log.trimmed" and fields["first_lsn"] == first


def test_records_that_the_journal_needs_stay() -> None:
    world = World()
    world.journal_needs = 0
    world.remover.look()
    assert world.partition.first_lsn == 0 and not world.removed


def test_records_that_a_persistent_session_has_not_had_stay_as_far_as_configured() -> None:
    assert_kept = World(needed=0)
    assert_kept.remover.look()
    assert assert_kept.partition.first_lsn == 0
    not_configured = World(needed=0, sessions_bytes_max=0)
    not_configured.remover.look()
    assert not_configured.partition.first_lsn > 0
