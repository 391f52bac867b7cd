"""The packer: one finished segment after the other, in steps with pauses; a fault is told and changes nothing."""

import errno
from typing import Any

from commitlog import Store
from commitlog.testing.simulated_files import SimulatedFiles
from commitlog.write.segment_packing import BLOCK_BYTES
from rumq.loop.scheduler import Lifecycle
from rumq.shards.retention.segment_packer import REST_SECONDS, START_SECONDS, SegmentPacker, packable
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
        self.free_bytes = 1 << 30
        self.packer = SegmentPacker(
            self.store.own, workers, self.now, self.lifecycle, self.now, bytes_per_second=rate,
            has_room=lambda size: size <= self.free_bytes,
        )  # fmt: skip

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


def test_a_step_that_ends_after_the_stop_replaces_nothing() -> None:
    """The threads of writers have ended before that: another one would write to the manifest beside the end of the log,
    and to a directory that is another process's."""
    world = World()
    submit, jobs = world.now.submit, list[Any]()

    def late(job: Any, done: Any, lane: int = 0) -> None:
        jobs.append(job)
        if job.__name__ == "step":
            submit(job, lambda is_over, fault: stopped(is_over, fault, done))

    def stopped(is_over: Any, fault: Any, done: Any) -> None:
        world.lifecycle.stop_phase = 5 if is_over else 0
        done(is_over, fault)

    world.now.submit = late  # type: ignore[method-assign]
    while world.now.waiting and not world.lifecycle.stop_phase:
        world.now.turn()
    assert {job.__name__ for job in jobs} == {"step"}
    assert not [name for name in world.files.names("data/main/g1/p0") if name.endswith(".pack")]
    assert not world.now.waiting


def test_the_room_that_records_need_is_not_taken_for_packed_files() -> None:
    """While the disk is full nothing is packed, and nothing is told of it; afterwards all is."""
    world = World()
    world.free_bytes = 100_000
    calls = len(world.files.calls)
    assert [world.now.turn() for _ in range(4)] == [START_SECONDS, REST_SECONDS, REST_SECONDS, REST_SECONDS]
    assert len(world.files.calls) == calls and not world.now.events
    world.packer.look()  # a segment was finished meanwhile
    world.free_bytes = 1 << 30
    world.turn_until_idle()
    assert len(world.packed()) == 4


def test_while_others_are_removed_a_packed_file_waits() -> None:
    world = World()
    partition = world.store.own[0]
    partition.segments.removing = True
    for _ in range(60):
        world.now.turn()
    assert [name for name in world.files.names("data/main/g1/p0") if name.endswith(".pack")] and not world.packed()
    partition.segments.removing = False
    world.turn_until_idle()
    assert len(world.packed()) == 4


def test_the_copies_of_a_node_that_is_served_alone_stay_as_they_are() -> None:
    """Nobody there knows what the other nodes can read."""
    world = World()
    assert packable(world.store, is_of_cluster=False) == world.store.own
    world.files.make_directory("data/_cluster")
    assert packable(world.store, is_of_cluster=False) == []
    assert packable(world.store, is_of_cluster=True) == world.store.own


class OfCluster(World):
    """below: what may be packed now"""

    def __init__(self) -> None:
        super().__init__()
        self.now.waiting.clear()
        workers: Any = DiskWorkers(self.now, self.now)  # type: ignore[arg-type]
        self.below = 0
        self.packer = SegmentPacker(
            self.store.own[:1], workers, self.now, self.lifecycle, self.now, bytes_per_second=RATE,
            has_room=lambda size: True, below=lambda partition: self.below,
        )  # fmt: skip

    def turn_all(self) -> None:
        """Whatever waits now, once."""
        waiting, self.now.waiting = self.now.waiting, []
        for _, call in waiting:
            call()


def test_in_a_cluster_only_what_may_be_is_packed_and_that_is_asked_again_and_again() -> None:
    world = OfCluster()
    first, second, _ = world.store.own[0].segments.files
    for _ in range(5):
        world.turn_all()
    assert not world.packed()
    world.below = second.base_lsn
    for _ in range(30):
        world.turn_all()
    assert world.packed() == [(0, first.base_lsn)]
    world.below = 1 << 40
    for _ in range(30):
        world.turn_all()
    assert world.packed() == [(0, first.base_lsn), (0, second.base_lsn)]


def test_a_packed_file_is_given_up_if_it_may_not_be_used_any_more() -> None:
    """A node went away while it was written; later it is made again."""
    world = OfCluster()
    world.below = 1 << 40
    while not any(name.endswith(".pack") for name in world.files.names("data/main/g1/p0")):
        world.turn_all()
    world.below = 0
    for _ in range(30):
        world.turn_all()
    assert not world.packed() and not any(n.endswith(".pack") for n in world.files.names("data/main/g1/p0"))
    world.below = 1 << 40
    for _ in range(60):
        world.turn_all()
    assert len(world.packed()) == 2
