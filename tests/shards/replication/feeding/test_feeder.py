"""One follower's copy of one partition: cut, caught up from disk, live; with a link and a reader that are played."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.replication import messages as m
from rumq.net.frames import MessageReader, Raw
from rumq.shards.replication.feeding import feeder
from rumq.shards.replication.feeding.copied_partition import CopiedPartition, CopyPiece, Trimmed
from rumq.shards.replication.feeding.feeder import RETRY_SECONDS, Feeder, Feeds
from rumq.shards.replication.feeding.piece_frames import Frames, frames_of
from tests.commitlog.records import append, index, opened, pack, some_records, write


class World:
    def __init__(self, groups: int = 0) -> None:
        self.partition = opened(SimulatedFiles()).own[0]
        self.copied = CopiedPartition("p", self.partition, lambda: None)
        self.said: list[Any] = []
        self.jobs: list[tuple[Any, Any]] = []
        self.later: list[tuple[float, Any]] = []
        self.compared: list[tuple[str, str]] = []
        self.events: list[str] = []
        self.peer, self.closed, self.room, self.wanted = "n1", False, 1 << 20, 0
        feeds: Any = Feeds(
            SimpleNamespace(submit=lambda job, done, lane: self.jobs.append((job, done))),  # type: ignore[arg-type]
            SimpleNamespace(later=lambda seconds, call: self.later.append((seconds, call))),  # type: ignore[arg-type]
            SimpleNamespace(tell=lambda name, **fields: self.events.append(name)),  # type: ignore[arg-type]
            lambda: 4, lambda peer, partition: self.compared.append((peer, partition)),
        )  # fmt: skip
        for _ in range(groups):
            self.group()
        self.feeder = Feeder(self.copied, self, feeds)

    # The link

    def say(self, message: m.ReplicaMessage, raw: Sequence[Raw] = ()) -> None:
        self.said.append(message)

    def write(self, frames: Frames) -> None:
        reader: MessageReader[m.ReplicaMessage] = MessageReader(m.ReplicaMessage)
        self.said += [message for message, _ in reader.feed(b"".join(map(bytes, frames.parts)))]

    def wants_room(self) -> None:
        self.wanted += 1

    def group(self) -> list[CopyPiece]:
        append(self.partition, some_records(3))
        write(self.partition)
        told = [each for each in self.copied.take() if isinstance(each, CopyPiece)]
        self.copied.group_ended()
        return told

    def read(self) -> None:
        """What the reader was asked for."""
        while self.jobs:
            job, done = self.jobs.pop(0)
            done(job(), None)

    def kinds(self) -> list[str]:
        return [type(each).__name__ for each in self.said]


def test_a_blank_copy_is_fed_from_disk_and_goes_live() -> None:
    world = World(groups=2)
    world.feeder.begin([])
    assert world.kinds() == ["Cut"] and not world.feeder.is_live and world.copied.lagging == 1
    world.read()
    assert world.kinds() == ["Cut", "Open", "Write"] and world.feeder.is_live and world.copied.lagging == 0
    told = world.group()
    world.feeder.told(frames_of(told, 4, "p"), told[-1].after)
    assert world.kinds()[3:] == ["Write"]


def test_a_copy_that_has_all_is_live_at_once() -> None:
    world = World(groups=1)
    [ours] = world.copied.segments()
    world.feeder.begin([m.SegmentInfo(ours.name, ours.base_lsn, ours.end_lsn, ours.stop, ours.is_done)])
    assert world.kinds() == ["Cut"] and world.feeder.is_live and world.jobs == []


def test_who_has_no_room_is_not_live_and_goes_on_when_there_is() -> None:
    world = World()
    world.feeder.begin([])
    assert world.feeder.is_live
    world.room = 0
    told = world.group()
    world.feeder.told(frames_of(told, 4, "p"), told[-1].after)
    assert not world.feeder.is_live and world.wanted == 1 and world.kinds() == ["Cut"]
    world.room = 1 << 20
    world.feeder.go_on()
    world.read()
    assert world.feeder.is_live and world.kinds()[-1] == "Write"


def test_reads_of_an_earlier_round_are_of_no_use() -> None:
    world = World(groups=1)
    world.feeder.begin([])
    [(job, done)] = world.jobs
    world.feeder.stop()
    done(job(), None)
    assert world.kinds() == ["Cut"] and world.copied.lagging == 0


def test_a_disk_that_cannot_be_read_is_told_and_tried_again() -> None:
    world = World(groups=1)
    world.feeder.begin([])
    [(_, done)] = world.jobs
    done(None, OSError(5, "broken"))
    [(seconds, again)] = world.later
    assert world.events == ["cluster.feed_failed"] and seconds == RETRY_SECONDS and world.compared == []
    again()
    assert world.compared == [("n1", "p")]


def test_a_segment_that_retention_has_removed_is_compared_anew() -> None:
    world = World(groups=1)
    world.feeder.begin([])
    [(_, done)] = world.jobs
    done(None, FileNotFoundError())
    assert world.compared == [("n1", "p")] and world.events == []


def test_a_trim_is_passed_on_to_who_is_being_fed() -> None:
    world = World()
    world.feeder.trimmed(Trimmed(5))
    assert world.said == []
    world.feeder.begin([])
    world.feeder.trimmed(Trimmed(5))
    assert world.said[-1] == m.TrimCopy(4, "p", 5)


def two_segments() -> World:
    """Of lone messages; the second one is not finished."""
    world = World()
    world.partition = opened(SimulatedFiles(), segment_bytes_max=100_000).own[0]
    world.copied = CopiedPartition("p", world.partition, lambda: None)
    world.feeder = Feeder(world.copied, world, world.feeder._feeds)
    for n in range(40):
        append(world.partition, some_records(1, n))
        write(world.partition)
        world.copied.take()
        world.copied.group_ended()
    index(world.partition)
    return world


@pytest.mark.parametrize("when", ["while the next block is read", "before it is"])
def test_a_copy_that_is_sent_a_file_is_compared_anew_when_that_is_packed(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next byte of the one is none of the other; it may lie behind the end of the other."""
    monkeypatch.setattr(feeder, "BLOCK_BYTES", 50_000)
    world = two_segments()
    world.feeder.begin([])
    for _ in range(2):
        if when == "before it is" and len(world.said) == 2:
            world.room = 0
        [(job, done)] = world.jobs
        world.jobs.clear()
        done(job(), None)
    assert world.kinds() == ["Cut", "Open", "Write"] and world.copied.lagging == 1
    assert pack(world.partition) == 1
    world.room = 1 << 20
    if when == "before it is":
        assert world.jobs == []
        world.feeder.go_on()
    else:
        [(job, done)] = world.jobs
        with pytest.raises(FileNotFoundError) as fault:
            job()
        done(None, fault.value)
    assert world.compared == [("n1", "p")] and world.kinds() == ["Cut", "Open", "Write"]


def test_a_copy_that_has_a_part_of_a_packed_segment_is_sent_it_anew() -> None:
    world = two_segments()
    before = world.copied.segments()[0]
    assert pack(world.partition) == 1
    part = m.SegmentInfo(before.name, before.base_lsn, before.end_lsn - 3, before.stop - 12_288, False, before.salt)
    world.feeder.begin([part])
    [cut] = world.said
    assert (cut.drop, cut.name, cut.refill, cut.refill_lsn) == ([], "", before.name, before.end_lsn)
    world.read()
    assert [type(each).__name__ for each in world.said[1:3]] == ["Open", "Write"]
    assert world.said[1].name == before.name and world.said[2].position == 4096


def test_a_copy_that_has_all_of_a_packed_segment_goes_on_behind_it() -> None:
    world = two_segments()
    before = world.copied.segments()
    whole = [m.SegmentInfo(s.name, s.base_lsn, s.end_lsn, s.stop, True, s.salt) for s in before[:1]]
    assert pack(world.partition) == 1
    world.feeder.begin(whole)
    world.read()
    assert world.said[0].drop == [] and world.said[0].refill == ""
    assert world.said[1].name == before[1].name, "the next one"
