"""One follower's copy of one partition: cut, caught up from disk, live; with a link and a reader that are played."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.replication import messages as m
from rumq.net.frames import MessageReader, Raw
from rumq.shards.replication.feeding.copied_partition import CopiedPartition, CopyPiece, Trimmed
from rumq.shards.replication.feeding.feeder import RETRY_SECONDS, Feeder, Feeds
from rumq.shards.replication.feeding.piece_frames import Frames, frames_of
from tests.commitlog.records import append, opened, some_records, write


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
