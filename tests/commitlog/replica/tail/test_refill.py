"""A copy whose leader has packed the segment in which the copy ends: it is sent anew, and nothing is lost meanwhile."""

from collections.abc import Sequence

import pytest

from commitlog import Partition
from commitlog.errors import CutBelowCommitted, Damaged, LogError
from commitlog.format.segment import BESIDE
from commitlog.replica.block_reader import read_block, read_opening
from commitlog.replica.differences import difference
from commitlog.replica.inventory import SegmentState
from commitlog.replica.mirror_partition import MirrorPartition
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    NOW,
    append,
    everything,
    index,
    mark,
    opened,
    pack,
    some_records,
    write,
)
from tests.commitlog.replica import copying
from tests.commitlog.replica.copying import SEGMENT_BYTES, copy_all, mirror_of, recovered, states
from tests.commitlog.test_log_agrees_with_a_list import PowerLost, chooser, power_for

LOSSES = ([0], [1], [1, 0], [3, 0, 1, 1, 0])
LONE = 14  # three segments and a half
APART_US = 1_600_000_000  # a packed chunk has 50 minutes at most: there are several in a segment


def leading(files: SimulatedFiles, count: int = LONE) -> Partition:
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES, segment_seconds_max=1 << 30).partitions[0]
    more(partition, 0, count)
    return partition


def more(partition: Partition, first: int, count: int) -> None:
    for n in range(first, first + count):
        append(partition, some_records(1, n), NOW + APART_US * n, "device", {0: 7})
        write(partition)
        mark(partition)
    index(partition)


def behind(files: SimulatedFiles, partition: Partition, *, writes: int = 5) -> SimulatedFiles:
    """The files of a copy that was sent so many chunks, and knows them to be committed."""
    others = SimulatedFiles()
    mirror = mirror_of(others)
    copy_all(files, partition, mirror, bytes_max=1, writes_max=writes)
    mirror.sync()
    mirror.note_committed(mirror.synced_lsn)
    mirror.close()
    return others.after_kill()


def packed_after(count: int = LONE, *, writes: int = 5) -> tuple[SimulatedFiles, Partition, SimulatedFiles]:
    """A leader's files and its partition, packed, and those of a copy that has a part of the first segment."""
    files = SimulatedFiles()
    partition = leading(files, count)
    others = behind(files, partition, writes=writes)
    assert pack(partition) == len(partition.segments.files) - 1
    return files, partition, others


def salts(mirror: MirrorPartition) -> dict[str, int]:
    return {each.name: each.salt for each in mirror.segments}


def beside(files: SimulatedFiles) -> list[str]:
    return [name for name in files.names(DIRECTORY) if name.endswith(BESIDE)]


def test_a_copy_that_ends_in_a_packed_segment_gets_it_anew() -> None:
    files, partition, others = packed_after()
    mirror = mirror_of(others)
    had = mirror.next_lsn
    assert 0 < had < (partition.segments.files[0].end_lsn or 0)
    mirror.note_committed(had)
    copy_all(files, partition, mirror, bytes_max=1)
    assert mirror.next_lsn == partition.written_lsn and beside(others) == []
    assert salts(mirror) == {state.name: state.salt for state in states(partition)}, "the very files of the leader"
    assert recovered(others.after_kill()) == everything(partition)[0]


def test_until_then_it_says_that_it_has_what_it_had() -> None:
    """It keeps its records, and its leader is told of no others: they are in a file that counts for nothing yet."""
    files, partition, others = packed_after()
    mirror = mirror_of(others)
    had, name = mirror.next_lsn, mirror.segments[-1].name
    ours = states(partition)
    copying.align(files, ours, 0, mirror)
    path = f"{DIRECTORY}/{name}"
    mirror.open_segment(name, read_opening(files, path))
    data, following = read_block(files, path, 4096, ours[0].stop, 1)
    mirror.write(name, 4096, data)
    mirror.sync()
    assert (mirror.next_lsn, mirror.synced_lsn) == (had, had)
    assert mirror.reached == (name, following) and following < ours[0].stop, "the leader counts what it has sent"
    assert recovered(others.after_kill()) == everything(partition)[0][:had]


def test_a_power_loss_at_any_call_keeps_what_the_copy_had() -> None:
    done, call = False, 0
    while not done:
        for loss in LOSSES:
            files, partition, others = packed_after(9)
            before = everything(partition)[0]
            mirror = mirror_of(others)
            had = mirror.next_lsn
            others.before_call = power_for(call)
            try:
                copy_all(files, partition, mirror, bytes_max=1)
                done = True
            except PowerLost:
                pass
            others = others.after_power_loss(chooser(loss))
            mirror = mirror_of(others)
            assert mirror.doubt == "" and mirror.next_lsn >= had, f"call {call}, {loss}"
            assert beside(others) == [], "what was sent in part is removed"
            assert recovered(others.after_kill()) == before[: mirror.next_lsn]
            mirror = mirror_of(others.after_kill())
            copy_all(files, partition, mirror)
            assert mirror.next_lsn == len(before)
        call += 1
    assert call > 20


def test_a_copy_that_has_all_of_a_packed_segment_is_sent_nothing_of_it() -> None:
    """Whether it is packed there, too, under another salt, or not."""
    files = SimulatedFiles()
    partition = leading(files)
    others = SimulatedFiles()
    mirror = mirror_of(others)
    copy_all(files, partition, mirror)
    copying.index(mirror)
    pack(partition)
    for packs in (False, True):
        if packs:
            assert copying.pack(mirror, 1 << 40) == len(partition.segments.files) - 1
        found = difference(states(partition), mirror.segments)
        assert (found.drop, found.name, found.refill) == ([], "", "")
        assert found.position == states(partition)[-1].stop
    assert recovered(others.after_kill()) == everything(partition)[0]


@pytest.mark.parametrize("is_packed_there", [False, True])
def test_a_tail_that_the_leader_never_had_is_cut_by_its_lsn(is_packed_there: bool) -> None:
    """The leader has packed a segment at which it was cut itself: where it ended, no byte of another file tells."""
    files = SimulatedFiles()
    deposed = opened(files, segment_bytes_max=1 << 20, segment_seconds_max=1 << 30).partitions[0]
    more(deposed, 0, 20)
    others = behind(files, deposed, writes=1 << 30)
    short = behind(files, deposed, writes=16)
    leader = opened(short, segment_bytes_max=1 << 20, segment_seconds_max=1 << 30, seed=70).partitions[0]
    more(leader, 100, 2)
    if is_packed_there:
        assert pack(leader) > 0
    mirror = mirror_of(others)
    committed = (leader.segments.files[0].end_lsn or 0) - 1
    assert mirror.next_lsn > committed + 1
    mirror.note_committed(committed)
    copy_all(short, leader, mirror)
    assert recovered(others.after_kill()) == everything(leader)[0]


def test_a_packed_segment_that_is_longer_than_the_leaders_is_dropped_only_where_nothing_committed_goes() -> None:
    files = SimulatedFiles()
    partition = leading(files)
    others = SimulatedFiles()
    mirror = mirror_of(others)
    copy_all(files, partition, mirror)
    copying.index(mirror)
    assert copying.pack(mirror, 1 << 40) > 0
    first = mirror.segments[0]
    ours = [SegmentState(first.name, 0, first.end_lsn - 1, 9000, True, first.salt + 100)]
    with pytest.raises(CutBelowCommitted):
        copying.align(files, ours, 0, mirror)
    assert mirror.next_lsn == partition.written_lsn
    mirror.forget_committed()  # an operator's word
    copying.align(files, ours, 0, mirror)
    assert mirror.next_lsn == 0 and mirror.segments == []


def test_other_segments_and_other_chunks_do_not_come_between() -> None:
    files, partition, others = packed_after()
    mirror = mirror_of(others)
    ours = states(partition)
    copying.align(files, ours, 0, mirror)
    with pytest.raises(LogError, match="is to be sent again before"):
        mirror.open_segment(ours[1].name, read_opening(files, f"{DIRECTORY}/{ours[1].name}"))
    path = f"{DIRECTORY}/{ours[0].name}"
    with pytest.raises(LogError, match="ends at 0"):
        mirror.write(ours[0].name, 4096, read_block(files, path, 4096, ours[0].stop, 1)[0])
    mirror.open_segment(ours[0].name, read_opening(files, path))
    with pytest.raises(Damaged):
        mirror.write(ours[0].name, 4096, b"x" * 128)
    copy_all(files, partition, mirror)
    assert mirror.next_lsn == partition.written_lsn


def test_a_reader_of_bytes_is_told_that_the_file_is_another_one() -> None:
    files = SimulatedFiles()
    partition = leading(files)
    before: Sequence[SegmentState] = states(partition)
    pack(partition)
    path = f"{DIRECTORY}/{before[0].name}"
    with pytest.raises(FileNotFoundError, match="was packed"):
        read_block(files, path, 4096, before[0].stop, 1 << 16, before[0].salt)
    with pytest.raises(FileNotFoundError, match="was packed"):
        read_opening(files, path, before[0].salt)
