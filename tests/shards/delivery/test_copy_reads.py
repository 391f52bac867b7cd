"""Reads of partitions of other shards: from this node's copy as far as it is proven, and from the leader where it is
not."""

from types import SimpleNamespace
from typing import Any

from commitlog import Chunk, StreamSpec
from commitlog.replica.replica_state import load_state
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.delivery.copy_reads import (
    DAMAGED_SECONDS,
    LOOK_SECONDS,
    PAUSE_SECONDS,
    READERS_MAX,
    CopiesHere,
    CopyReads,
)
from tests.commitlog.records import append, mark, opened, segments, some_records, write
from tests.shards.bus.world import Hand
from tests.shards.world import ByHand

LEADER = Chunk(0, 1, 0, 0, b"", b"")  # what the leader answers with


class World:
    """Partition 0 is shard 1's, which another node leads; its copy here has 30 records, 20 of them proven.

    epoch: of the leader that this shard is linked to; asked: of the leader"""

    def __init__(self, partitions: int = 1) -> None:
        self.files = SimulatedFiles()
        self.log = opened(self.files).own[0]
        for first in (0, 10):
            append(self.log, some_records(10, first))
            write(self.log)
        self.log.note_replicated(20)
        mark(self.log)
        append(self.log, some_records(10, 20))
        write(self.log)
        self.state = load_state(self.files, "data", 1, "disk", has_log=False)
        self.state.open(3)
        self.epoch = 3
        self.hand, self.pool = Hand(), ByHand()
        spec = StreamSpec("main", ("#",), partitions)
        self.partitions = [RemotePartition(spec, n, n, 1, 1) for n in range(partitions)]
        for each in self.partitions:
            each.is_met = True
        self.asked: list[tuple[int, int]] = []
        here = CopiesHere(self.files.beside(), "data", lambda shard: self.epoch if shard == 1 else 0)
        owners: Any = SimpleNamespace(read=self._ask)
        self.reads = CopyReads(self.partitions, here, self.pool, owners, self.hand, self.hand)

    def _ask(self, index: int, lsn: int, done: Any) -> None:
        self.asked.append((index, lsn))
        done([LEADER], None)

    def read(self, lsn: int, index: int = 0) -> list[tuple[int, int]]:
        """(first, next) of the chunks from the copy; [] if the leader was asked."""
        found: list[Any] = []
        asked = len(self.asked)
        self.reads.read(index, lsn, lambda chunks, fault: found.append((chunks, fault)))
        while self.pool.jobs:
            self.pool.work()
        ((chunks, fault),) = found
        assert fault is None
        if chunks == [LEADER]:
            assert self.asked[asked:] == [(index, lsn)]
            return []
        assert len(self.asked) == asked
        return [(each.base_lsn, each.next_lsn) for each in chunks]


def test_history_comes_from_the_copy_and_what_is_not_proven_from_the_leader_at_the_same_lsn() -> None:
    world = World()
    assert world.read(0) == [(0, 20)] and world.read(7) == [(0, 20)]
    assert world.partitions[0].topic_names == [b"t/0", b"t/1", b"t/2"]
    assert world.reads.bytes > 2 * 20 * 32
    assert world.read(20) == [] and world.asked == [(0, 20)]


def test_a_read_waits_on_a_thread_of_its_own() -> None:
    world = World()
    world.reads.read(0, 0, lambda chunks, fault: None)
    assert list(world.pool.lanes) == [2] and not world.files.beside().looks


def test_a_copy_is_looked_at_for_more_only_every_now_and_then() -> None:
    world = World()
    assert world.read(0) and not world.read(20)
    world.log.note_replicated(30)
    mark(world.log)
    assert not world.read(20) and not world.pool.jobs
    world.hand.monotonic += LOOK_SECONDS
    assert world.read(20) == [(20, 30)]


def test_a_shard_that_leads_here_or_that_nobody_is_linked_to_is_asked() -> None:
    world = World()
    world.epoch = 0
    assert not world.read(0) and not world.pool.jobs


def test_what_retention_has_removed_at_the_leader_is_not_shown_though_the_copy_has_it() -> None:
    world = World()
    world.partitions[0].first_lsn = 5
    assert not world.read(4) and world.read(5)


def test_a_copy_of_another_term_is_left_alone_for_a_while() -> None:
    world = World()
    world.epoch = 4
    assert not world.read(0)
    world.state.promise(4)
    world.state.open(4)
    assert not world.read(0)
    world.hand.monotonic += PAUSE_SECONDS
    assert world.read(0) == [(0, 20)]


def test_a_read_that_ends_after_its_leader_has_changed_is_the_new_one_s() -> None:
    world = World()
    found: list[Any] = []
    world.reads.read(0, 0, lambda chunks, fault: found.append(chunks))
    world.epoch = 4
    world.pool.work()
    assert found == [[LEADER]] and world.asked == [(0, 0)]
    assert world.partitions[0].topic_names == []
    world.epoch = 3
    world.hand.monotonic += PAUSE_SECONDS
    assert world.read(0) == [(0, 20)] and len(world.partitions[0].topic_names) == 3


def test_a_damaged_copy_is_told_once_and_left_alone_for_a_minute() -> None:
    world = World()
    (path,) = segments(world.files)
    world.files.damage(path, world.files.content(path).index(b"payload 3"))
    assert not world.read(0) and not world.read(0)
    ((name, fields),) = world.hand.events
    assert name == "cluster.copy_unreadable" and (fields["stream"], fields["partition"]) == ("main", 0)
    assert "do not match their checksum" in fields["why"]
    world.hand.monotonic += DAMAGED_SECONDS
    assert not world.read(0) and len(world.hand.events) == 2


def test_a_disk_that_fails_is_told_and_the_leader_is_asked() -> None:
    world = World()
    world.reads._here.files.fail_looks = {0: 5}  # type: ignore[attr-defined]
    assert not world.read(0)
    assert [name for name, _ in world.hand.events] == ["cluster.copy_unreadable"]


def test_the_files_of_a_bounded_number_of_copies_are_known() -> None:
    world = World(partitions=READERS_MAX + 3)
    for index in range(READERS_MAX + 3):
        world.read(0, index)
    assert len(world.reads._copies) == READERS_MAX
