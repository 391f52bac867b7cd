"""What is behind the last chunk of a copy: zeros that were written ahead, a torn tail, what a failed sync left."""

import errno

import pytest

from commitlog import LogError, Partition
from commitlog.format.segment import SegmentHeader, encode_segment_header
from commitlog.replica.block_reader import read_block, read_opening
from commitlog.replica.mirror_partition import MirrorPartition
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import DIRECTORY, append, everything, opened, segments, some_records, write
from tests.commitlog.replica.copying import SEGMENT_BYTES, copy, copy_all, mirror_of, recovered, states
from tests.commitlog.test_log_agrees_with_a_list import PowerLost, power_for


def leader_with(groups: int) -> tuple[SimulatedFiles, Partition]:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES, hot=1 << 20).partitions[0]
    for group in range(groups):
        append(partition, some_records(10, 10 * group))
        write(partition)
    return files, partition


def test_what_a_failed_sync_left_in_the_cache_is_not_taken_for_synced() -> None:
    """The next sync of the file succeeds, and has not written it."""
    files, partition = leader_with(2)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy(files, states(partition), 0, mirror, bytes_max=1, writes_max=1)
    state = states(partition)[0]
    data, _ = read_block(files, f"{DIRECTORY}/{state.name}", mirror.position, state.stop, 1)
    mirror.write(state.name, mirror.position, data)
    copied.fail = {len(copied.calls): errno.EIO}
    with pytest.raises(OSError):
        mirror.sync()
    copied = copied.after_kill()
    mirror = mirror_of(copied)
    assert mirror.next_lsn == 10
    copy_all(files, partition, mirror)
    assert mirror.synced_lsn == 20
    assert recovered(copied.after_power_loss(lambda n: 0)) == everything(partition)[0]


def test_a_torn_tail_is_cut_off_before_more_is_written() -> None:
    files, partition = leader_with(3)
    copied = SimulatedFiles()
    copy(files, states(partition), 0, mirror_of(copied), bytes_max=1, writes_max=1)
    (path,) = segments(copied)
    whole = files.content(path)
    torn = whole[:8192] + bytes(512) + whole[8192 + 512 : states(partition)[0].stop] + b"torn" * 999
    copied = copied.after_kill()
    copied.put(path, torn)
    mirror = mirror_of(copied)
    assert mirror.next_lsn == 10
    assert copied.content(path) == torn, "opening changes nothing"
    copy(files, states(partition), 0, mirror, bytes_max=1, writes_max=1)
    mirror.sync()
    assert copied.content(path) == whole[: 3 * 4096]


def test_zeros_ahead_are_used_again_after_a_start() -> None:
    files, partition = leader_with(1)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror)
    path = f"{DIRECTORY}/{mirror.tail[0]}"
    size = copied.size(path)
    assert size > mirror.position
    copied = copied.after_kill()
    append(partition, some_records(10, 10))
    write(partition)
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror)
    assert copied.size(path) == size, "neither cut off nor longer"


def test_a_sealed_copy_has_no_zeros_behind() -> None:
    files, partition = leader_with(1)
    copied = SimulatedFiles()
    mirror = MirrorPartition(copied, DIRECTORY, "main", 0)  # of larger segments: more zeros
    copy_all(files, partition, mirror)
    first = mirror.tail[0]
    assert copied.size(f"{DIRECTORY}/{first}") > mirror.position
    for group in range(1, 5):
        append(partition, some_records(10, 10 * group))
        write(partition)
    copy_all(files, partition, mirror)
    assert mirror.segments[0].is_done
    assert copied.size(f"{DIRECTORY}/{first}") == mirror.segments[0].stop


@pytest.mark.parametrize("call", range(4))
def test_a_segment_that_could_not_be_opened_is_not_left_behind(call: int) -> None:
    files, partition = leader_with(1)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    (state,) = states(partition)
    header = read_opening(files, f"{DIRECTORY}/{state.name}")
    copied.fail = {len(copied.calls) + call: errno.EIO}
    with pytest.raises(OSError):
        mirror.open_segment(state.name, header)
    assert mirror.failed and segments(copied) == []
    mirror = mirror_of(copied.after_kill())
    copy_all(files, partition, mirror)
    assert mirror.synced_lsn == 10


def test_a_segment_is_synced_before_the_next_one_is_opened() -> None:
    files, partition = leader_with(9)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror, writes_between=1000)
    assert mirror.synced_lsn == 90
    assert recovered(copied.after_power_loss(lambda n: 0)) == everything(partition)[0]


def test_a_cut_inside_a_segment_is_synced() -> None:
    files, partition = leader_with(3)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror)
    (state,) = mirror.segments
    mirror.cut([], state.name, 10, 8192, 0)
    mirror = mirror_of(copied.after_power_loss(lambda n: 0))
    assert mirror.segments == [state._replace(end_lsn=10, stop=8192)]


def test_of_segments_with_one_base_the_later_comes_last() -> None:
    """A recovery would take the other one for the last, and ignore the records of this one."""
    header = SegmentHeader(1, 0, "main", bytes(16), 7, 0, 1000, 2, bytes(16))
    name = f"{0:020d}-00000000.seg"
    mirror = mirror_of(SimulatedFiles())
    mirror.open_segment(name, encode_segment_header(header))
    for epoch, created_us in ((1, 2000), (2, 999)):
        earlier = header._replace(uuid=b"\1" * 16, epoch=epoch, created_us=created_us)
        with pytest.raises(LogError, match="cannot follow"):
            mirror.open_segment(f"{0:020d}-01010101.seg", encode_segment_header(earlier))
    later = header._replace(uuid=b"\1" * 16, created_us=1001)
    mirror.open_segment(f"{0:020d}-01010101.seg", encode_segment_header(later))
    assert len(mirror.segments) == 2


def test_a_removal_that_was_interrupted_is_completed_at_the_next_start() -> None:
    files, partition = leader_with(12)
    done = False
    call = 0
    while not done:
        copied = SimulatedFiles()
        mirror = mirror_of(copied)
        copy_all(files, partition, mirror)
        first_lsn = mirror.segments[2].base_lsn
        copied.before_call = power_for(call)
        try:
            mirror.trim(first_lsn)
            done = True
        except PowerLost:
            pass
        for choice in (0, 1):
            after = copied.after_power_loss(lambda n, choice=choice: choice % n)  # type: ignore[misc]
            mirror = mirror_of(after)
            assert mirror.doubt == "" and mirror.first_lsn in (0, first_lsn)
            assert len(segments(after)) == len(mirror.segments), "no file stays that nobody knows"
            expected = [seen for seen in everything(partition)[0] if seen.lsn >= mirror.first_lsn]
            assert recovered(after) == expected
        call += 1
    assert mirror.first_lsn == first_lsn and call > 5
