"""What a partition's writer has told, and what of it is at hand for followers that catch up."""

import itertools

from commitlog import Partition
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.replication.feeding.copied_partition import CopiedPartition, CopyPiece, Trimmed
from tests.commitlog.records import append, opened, some_records, write


class World:
    def __init__(self) -> None:
        self.partition: Partition = opened(SimulatedFiles()).own[0]
        self.woken = 0
        self.copied = CopiedPartition("main/g1/p0", self.partition, self._wake)

    def _wake(self) -> None:
        self.woken += 1

    def group(self, count: int = 3) -> list[CopyPiece | Trimmed]:
        """One group of records, written."""
        append(self.partition, some_records(count))
        write(self.partition)
        told = self.copied.take()
        assert not self.copied.group_ended()
        return told


def test_pieces_follow_each_other_from_the_header_on() -> None:
    world = World()
    told = [*world.group(), *world.group()]
    pieces = [each for each in told if isinstance(each, CopyPiece)]
    assert len(pieces) == len(told) and world.woken >= 2
    assert pieces[0].base_lsn == 0 and all(each.base_lsn == -1 for each in pieces[1:])
    for before, after in itertools.pairwise(pieces):
        assert after.before == before.after
    assert world.copied.end == pieces[-1].after
    [segment] = world.copied.segments()
    assert (segment.name, segment.stop) == world.copied.end and segment.end_lsn == 6


def test_pieces_are_kept_only_while_a_follower_catches_up() -> None:
    world = World()
    world.group()
    place = world.copied.end
    world.group()
    assert world.copied.maybe_behind(place) is None and world.copied.maybe_behind(world.copied.end) == []
    world.copied.lagging = 1
    place = world.copied.end
    told = world.group()
    assert world.copied.maybe_behind(place) == told


def test_what_was_told_before_a_group_failed_counts_no_more() -> None:
    world = World()
    world.group()
    end = world.copied.end
    world.copied.written(end[0], end[1], b"never there")
    world.copied.irregular()
    assert world.copied.take() == [] and world.copied.is_irregular
    assert world.copied.maybe_behind(end) is None
    assert world.copied.group_ended() and not world.copied.is_irregular
    assert world.copied.end == end


def test_a_trim_is_told_in_its_place() -> None:
    world = World()
    world.copied.trimmed(7)
    assert world.copied.take() == [Trimmed(7)]


def test_a_log_that_is_there_ends_where_its_last_segment_does() -> None:
    world = World()
    world.group()
    again = CopiedPartition("main/g1/p0", world.partition, lambda: None)
    assert again.segments()[0].name == world.copied.end[0]
    assert again.path_of("x") == f"{world.partition.directory}/x"
