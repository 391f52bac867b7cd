"""The packer: one finished segment after the other, in steps with pauses; a fault is told and changes nothing."""

import errno
from typing import Any

from commitlog import Store
from commitlog.testing.simulated_files import SimulatedFiles
from commitlog.write.segment_packing import BLOCK_BYTES
from rumq.loop.scheduler import Lifecycle
from rumq.shards.retention.segment_packer import REST_SECONDS, START_SECONDS, SegmentPacker
from rumq.shards.write_path.worker_threads import DiskWorkers
from tests.commitlog.records import NOW, append, everything, index, opened, some_records, write
from tests.shards.retention.test_scrubber import Now

RATE = 1 << 20
PAUSE = BLOCK_BYTES / RATE


class World:
    """Two partitions with two finished segments of lone messages each."""

    def __init__(self, *, rate: int = RATE) -> None:
        self.files = SimulatedFiles()
        self.store: Store = opened(self.files, segment_bytes_max=200_000, partitions=2)
        self.now, self.lifecycle = Now(), Lifecycle()
        for partition in self.store.own:
            for n in range(110):
                append(partition, some_records(1, n), NOW + n)
                write(partition)
            index(partition)
        self.before = [everything(partition) for partition in self.store.own]
        workers: Any = DiskWorkers(self.now, self.now)  # type: ignore[arg-type]
        self.packer = SegmentPacker(self.store.own, workers, self.now, self.lifecycle, self.now, bytes_per_second=rate)

    def turn_until_idle(self) -> list[float]:
        waits = []
        while self.now.waiting:
            waits.append(self.now.turn())
        return waits

    def packed(self) -> list[tuple[int, int]]:
        """(partition, first lsn) of what the events tell."""
        return [(said["partition"], said["first_lsn"]) for name, said in self.now.events if name == "log.packed"]


def test_all_finished_segments_are_packed_in_steps_with_pauses() -> None:
    world = World()
    firsts = [(p.number, s.base_lsn) for p in world.store.own for s in p.segments.files[:-1]]
    waits = world.turn_until_idle()
    assert waits[0] == START_SECONDS and set(waits[1:]) == {PAUSE} and len(waits) > 8
    assert sorted(world.packed()) == firsts and len(firsts) == 4
    assert [everything(partition) for partition in world.store.own] == world.before
    for name, said in world.now.events:
        assert name == "log.packed" and said["bytes"] * 10 < said["bytes_before"]


def test_a_segment_that_is_finished_later_is_packed_when_that_is_told() -> None:
    world = World()
    world.turn_until_idle()
    partition = world.store.own[0]
    for n in range(110, 200):
        append(partition, some_records(1, n), NOW + n)
        write(partition)
    index(partition)
    assert not world.now.waiting
    world.packer.look()
    assert world.now.waiting
    world.packer.look()  # told once more, while one is being packed
    world.turn_until_idle()
    assert len(world.packed()) == 6


def test_a_fault_is_told_and_the_next_one_comes_later() -> None:
    world = World()
    world.files.fail = {len(world.files.calls) + 1: errno.EIO}
    waits = world.turn_until_idle()
    assert waits.count(REST_SECONDS) == 1 and len(world.packed()) == 3
    [(name, said)] = [event for event in world.now.events if event[0] != "log.packed"]
    assert name == "log.failed" and "could not be packed, and stays as it is" in said["why"]
    assert [everything(partition) for partition in world.store.own] == world.before


def test_a_stop_ends_it_and_leaves_nothing() -> None:
    world = World()
    for _ in range(3):
        world.now.turn()
    assert [name for name in world.files.names("data/main/g1/p0") if name.endswith(".pack")]
    world.lifecycle.stop_phase = 1
    world.turn_until_idle()
    assert not [name for name in world.files.names("data/main/g1/p0") if name.endswith(".pack")]
    assert not world.packed()
    world.packer.look()
    assert not world.now.waiting
