"""Reads of records that are not in memory: our partitions on a thread, those of another shard by way of their owner."""

import errno
from typing import Any

from commitlog import Chunk, OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from router.commands import ColdChunks
from router.effects import ReadCold
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.delivery.cold_reads import ColdReads
from tests.commitlog.records import DEAD, NOW, append, numbers, some_records, write
from tests.shards.bus.world import Hand
from tests.shards.world import ByHand


class World:
    """Partition 0 is ours and on disk, partition 1 is another shard's. asked: of its owner"""

    def __init__(self) -> None:
        def elsewhere(spec: StreamSpec, where: int, number: int) -> RemotePartition | None:
            return RemotePartition(spec, where, number, 1, 7) if where == 1 else None

        self.store = open_store(
            SimulatedFiles(),
            "data",
            StoreLayout([StreamSpec("main", ("#",), 2)], lambda f, t: True, elsewhere=elsewhere),
            OpenOptions(NOW, random=numbers(0), hot_bytes_max=0, direct_bytes_min=1 << 30),
            holder=DEAD,
        )
        for first in (0, 10):
            append(self.store.own[0], some_records(10, first))
            write(self.store.own[0])
        self.hand, self.pool = Hand(), ByHand()
        self.asked: list[tuple[int, int, Any]] = []
        self.reads = ColdReads(self.store, self.pool, self.hand, self.hand, self)

    def read(self, index: int, lsn: int, done: Any) -> None:
        self.asked.append((index, lsn, done))

    def answers(self) -> list[tuple[int, int, list[tuple[int, int]]]]:
        """Of each command to the router: partition, lsn, and (first, next) of its chunks."""
        items = [item for item in self.hand.items if isinstance(item, ColdChunks)]
        return [(each.partition, each.lsn, [(c.base_lsn, c.next_lsn) for c in each.chunks]) for each in items]


def test_a_read_of_ours_waits_on_a_thread_and_brings_small_chunks_as_one() -> None:
    world = World()
    found: list[Any] = []
    world.reads.read(0, 5, lambda chunks, fault: found.append((chunks, fault)))
    assert found == [] and world.asked == []
    world.pool.work()
    ((chunks, fault),) = found
    assert fault is None and [(c.base_lsn, c.next_lsn) for c in chunks] == [(0, 20)]
    assert all(isinstance(chunk, Chunk) for chunk in chunks)


def test_a_read_of_another_shard_s_partition_is_its_owner_s() -> None:
    world = World()

    def done(chunks: object, fault: object) -> None: ...

    world.reads.read(1, 5, done)
    assert world.asked == [(1, 5, done)] and not world.pool.jobs


def test_the_router_gets_what_it_asked_for_as_a_command() -> None:
    world = World()
    world.reads.carry_out(ReadCold(0, 10))
    world.reads.carry_out(ReadCold(1, 3))
    world.pool.work()
    world.asked[0][2]([], None)
    assert world.answers() == [(0, 10, [(10, 20)]), (1, 3, [])] and world.hand.events == []


def test_a_disk_that_fails_is_told_and_the_router_still_gets_an_answer() -> None:
    """Without one, those who wait for this read would wait for ever."""
    world = World()
    world.reads.carry_out(ReadCold(0, 10))
    _, done = world.pool.jobs.popleft()
    done(None, OSError(errno.EIO, "broken"))
    assert world.answers() == [(0, 10, [])]
    ((name, fields),) = world.hand.events
    assert name == "log.failed" and (fields["stream"], fields["partition"]) == ("main", 0)
    assert "broken" in fields["why"]
