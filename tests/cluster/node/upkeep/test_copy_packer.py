"""A node packs its copies beside its loop: what is committed, while all may, and never under somebody who reads."""

import errno
from typing import Any

import pytest

from commitlog.format.segment import BESIDE
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.node.log_copies import CopyId, NodeLogCopies
from rumq.cluster.node.upkeep.copy_packer import LOOK_SECONDS, REST_SECONDS, CopyPacker
from tests.cluster.node.world import COPIES, KEY
from tests.commitlog.records import append, mark, opened, some_records, write

DIRECTORY = f"data/{KEY}"
STATE = "_state/g1/p0"


def files_of_copies() -> SimulatedFiles:
    """Of a partition with several segments of lone messages."""
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=60_000).partitions[0]
    for n in range(60):
        append(partition, some_records(1, n))
        write(partition)
    mark(partition)
    return files.after_kill()


class World:
    """may_pack from the beginning; nothing is committed yet"""

    def __init__(self, *, rate: int = 1 << 30) -> None:
        self.files = files_of_copies()
        self.copies = NodeLogCopies(self.files, "data", COPIES)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.room = 1 << 40
        self.now = 0.0
        self.packer = CopyPacker(
            self.copies, rate, lambda size: size <= self.room, lambda name, **said: self.events.append((name, said)),
            0.0,
        )  # fmt: skip
        self.packer.may_pack = True

    def commit(self) -> None:
        self.copies.note_committed(KEY, self.copies.ends()[KEY])
        while self.indexes():
            self.copies.work()

    def indexes(self) -> int:
        """Segments that have no index yet; the last one never has one."""
        names = self.files.names(DIRECTORY)
        return sum(f"{name[:-4]}.idx" not in names for name in sorted(n for n in names if n.endswith(".seg"))[:-1])

    def run(self, seconds: float = 4.0) -> None:
        """So long, with a job's end waited for."""
        until = self.now + seconds
        while self.now < until:
            if self.packer._job is not None:
                self.packer._job.exception(30)
            self.packer.step(self.now)
            self.now += 0.1

    def packed(self) -> list[int]:
        return [said["first_lsn"] for name, said in self.events if name == "log.packed"]


def test_what_is_committed_is_packed_and_told() -> None:
    world = World()
    before = world.copies.inventory(KEY)
    world.run(LOOK_SECONDS + 1)
    assert world.packed() == [], "nothing is committed"
    world.commit()
    world.run(LOOK_SECONDS + 1)
    after = world.copies.inventory(KEY)
    assert world.packed() == [each.base_lsn for each in before[:-1]] and len(before) > 3
    for one, other in zip(before[:-1], after[:-1], strict=True):
        assert (one.name, one.end_lsn) == (other.name, other.end_lsn)
        assert other.stop * 3 < one.stop and other.salt != one.salt
    assert after[-1] == before[-1]
    _, said = world.events[0]
    assert (said["stream"], said["partition"], said["bytes_before"]) == ("main", 0, before[0].stop)
    again = NodeLogCopies(world.files.after_kill(), "data", COPIES)
    assert again.doubt == "" and again.inventory(KEY) == after


def test_nothing_is_packed_while_a_node_is_away() -> None:
    world = World()
    world.commit()
    world.packer.may_pack = False
    world.run(LOOK_SECONDS + 1)
    assert world.packed() == []
    world.packer.may_pack = True
    world.run(LOOK_SECONDS + 1)
    assert world.packed() != []


def test_a_file_is_not_replaced_while_a_node_is_away() -> None:
    """It went while the file was written: that is given up, and made again later."""
    world = World()
    world.commit()
    while world.packer._packing is None or world.packer._packing.packed is None:
        world.run(0.1)
        if world.packer._job is not None:
            world.packer._job.exception(30)
    world.packer.may_pack = False
    world.run(1.0)
    assert world.packed() == [] and not any(name.endswith(BESIDE) for name in world.files.names(DIRECTORY))
    world.packer.may_pack = True
    world.run(2 * LOOK_SECONDS)
    assert 0 in world.packed()


def test_a_file_is_not_replaced_under_a_claimant_who_is_sent_its_bytes() -> None:
    world = World()
    world.commit()
    served = world.copies.serve(1, KEY, [])
    next(served)
    world.run(LOOK_SECONDS + 1)
    assert world.packed() == []
    served.close()
    world.run(LOOK_SECONDS + 1)
    assert world.packed() != []


def test_what_is_dropped_meanwhile_is_let_go() -> None:
    world = World()
    world.commit()
    while world.packer._packing is None or world.packer._packing.packed is None:
        world.run(0.1)
        if world.packer._job is not None:
            world.packer._job.exception(30)
    first = world.copies.inventory(KEY)[1].base_lsn
    world.copies._copies[KEY].trim(first)
    world.run(1.0)
    assert 0 not in world.packed() and not any(name.endswith(BESIDE) for name in world.files.names(DIRECTORY))


@pytest.mark.parametrize("what", ["no room", "a disk that fails"])
def test_it_rests_when_the_disk_takes_nothing(what: str) -> None:
    world = World()
    world.commit()
    if what == "no room":
        world.room = 0
    else:
        world.files.fail = {len(world.files.calls): errno.EIO}
    world.run(LOOK_SECONDS)
    assert world.packed() == []
    assert [name for name, _ in world.events] == ([] if what == "no room" else ["log.failed"])
    world.files.fail, world.room = {}, 1 << 40
    world.run(REST_SECONDS + LOOK_SECONDS)
    assert world.packed() != []


def test_zero_switches_it_off() -> None:
    world = World(rate=0)
    world.commit()
    world.run(2 * LOOK_SECONDS)
    assert world.packed() == []


def test_a_stop_leaves_nothing_beside_a_segment() -> None:
    world = World()
    world.commit()
    world.packer.step(0.0)
    world.packer.close()
    world.copies.close()
    assert not any(name.endswith(BESIDE) for name in world.files.names(DIRECTORY))
    world.packer.close()


def test_journals_stay_as_they_are() -> None:
    """They are made smaller by what they no longer need."""
    world = World()
    state = SimulatedFiles()
    copies = NodeLogCopies(state, "data", [CopyId(STATE, "_state", 0)])
    world.packer = CopyPacker(copies, 1, lambda size: True, lambda name, **said: None, 0.0)
    assert copies.take_packing(1) is None
