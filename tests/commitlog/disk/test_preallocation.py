"""Zeros ahead of a segment's data: docs/decisions/0025-preallocated-segments.md."""

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog.disk.preallocation import (
    GROUP_BYTES_MAX,
    PAGE,
    PIECE_BYTES_MAX,
    PIECE_BYTES_MIN,
    data_end,
    piece_bytes,
    release,
)
from commitlog.format.segment import SEGMENT_HEADER_BYTES
from commitlog.read.verify import verify
from commitlog.testing.simulated_device import SECTOR
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.preallocated import group, size_of, with_room
from tests.commitlog.records import (
    append,
    everything,
    mark,
    opened,
    preallocate,
    records_of,
    segments,
    some_records,
    view,
    viewed,
    write,
)

MIB = 1 << 20


def test_a_group_in_preallocated_space_changes_nothing_of_the_file_but_its_data() -> None:
    files = SimulatedFiles()
    partition = with_room(files)
    before, free, stake = size_of(files), files.free_bytes("data"), files.at_stake()
    for _ in range(4):
        group(partition)
    assert size_of(files) == before and files.free_bytes("data") == free
    assert files.at_stake() == stake


def test_pieces_grow_with_the_segment() -> None:
    assert piece_bytes(SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES, 64 * MIB, 1 << 40) == PIECE_BYTES_MIN
    assert piece_bytes(300_000, 300_000, 64 * MIB, 1 << 40) == 300_000 // PAGE * PAGE
    assert piece_bytes(8 * MIB, 8 * MIB, 64 * MIB, 1 << 40) == PIECE_BYTES_MAX


def test_no_piece_reaches_beyond_the_segment_or_takes_much_of_what_is_free() -> None:
    assert piece_bytes(8 * MIB, 64 * MIB - PIECE_BYTES_MAX // 2, 64 * MIB, 1 << 40) == PIECE_BYTES_MAX // 2
    assert piece_bytes(8 * MIB, 64 * MIB - PAGE, 64 * MIB, 1 << 40) == 0, "the segment is nearly full"
    assert piece_bytes(8 * MIB, 8 * MIB, 64 * MIB, 32 * MIB) == PIECE_BYTES_MAX // 2
    assert piece_bytes(8 * MIB, 8 * MIB, 64 * MIB, 16 * MIB) == 0


def test_an_empty_partition_takes_no_room_and_one_of_few_records_little() -> None:
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    preallocate(partition, always=True)
    assert not segments(files)
    group(partition)
    preallocate(partition)
    assert size_of(files) <= 2 * PIECE_BYTES_MIN


def test_room_is_due_again_only_when_most_of_it_is_used() -> None:
    files = SimulatedFiles()
    partition = with_room(files, 1)
    dues = []
    for _ in range(64):
        group(partition)
        dues.append(bool(partition.wants_room))
        preallocate(partition)
    assert 1 <= sum(dues) <= 5


def test_large_groups_are_not_written_twice() -> None:
    partition = opened(SimulatedFiles()).partitions[0]
    append(partition, [(b"t", b"x" * 1000)] * (GROUP_BYTES_MAX // 1000 + 1))
    assert write(partition)
    assert not partition.wants_room


def test_zeros_are_never_written_where_records_are() -> None:
    """A large group has gone beyond the zeros; the next ones begin behind it."""
    files = SimulatedFiles()
    partition = with_room(files)
    records = some_records(6) + [(b"t/0", b"x" * 1000)] * 200
    append(partition, records[6:])
    assert write(partition) and partition.segments.active.bytes > partition.segments.active.allocated > 0
    append(partition, records[:1])
    assert write(partition) and partition.wants_room
    preallocate(partition)
    append(partition, records[1:2])
    assert write(partition)
    found, gaps = viewed(view(files))  # not from memory
    assert records_of(found) == records + records[:2] and gaps == []
    assert partition.segments.active.allocated > partition.segments.active.bytes


def test_durability_process_has_nothing_to_gain() -> None:
    files = SimulatedFiles()
    partition = opened(files, durability="process").partitions[0]
    group(partition)
    assert not partition.wants_room
    calls = len(files.calls)
    preallocate(partition, always=True)
    assert len(files.calls) == calls


def test_a_seal_cuts_the_file_off_behind_its_data() -> None:
    files = SimulatedFiles()
    partition = with_room(files)
    path = segments(files)[0]
    roll = partition.take_roll(10**18)
    assert roll is not None
    roll.run()
    partition.complete(roll)
    sealed = partition.segments.files[0]
    assert sealed.sealed and len(files.content(path)) == sealed.logical_end == sealed.disk_bytes
    after = files.after_power_loss(lambda n: 0)
    assert len(after.content(path)) == sealed.logical_end, "before the manifest calls it sealed"


def test_what_is_allocated_is_what_the_log_takes() -> None:
    files = SimulatedFiles()
    partition = with_room(files)
    segment = partition.segments.active
    assert partition.segments.bytes == segment.disk_bytes == size_of(files) > segment.bytes


def test_after_a_kill_the_next_start_gives_the_room_back() -> None:
    files = SimulatedFiles()
    with_room(files)
    path, files = segments(files)[0], files.after_kill()
    store = opened(files)
    assert store.recovered[0].torn_bytes == 0, "zeros are not torn"
    assert len(files.content(path)) == store.partitions[0].segments.files[0].logical_end
    assert records_of(everything(store.partitions[0])[0]) == some_records(6)


def test_a_start_that_cannot_give_it_back_goes_on() -> None:
    files = SimulatedFiles()
    with_room(files)
    dry, refused = files.after_power_loss(lambda n: 1), files.after_power_loss(lambda n: 1)
    opened(dry)
    refused.fail = {[name for name, _ in dry.calls].index("truncate"): errno.EIO}
    assert records_of(everything(opened(refused).partitions[0])[0]) == some_records(6)
    assert size_of(refused) == size_of(files) > size_of(dry)


def test_release_keeps_whatever_is_not_zero() -> None:
    files = SimulatedFiles()
    files.make_directory("d")
    for content, kept in (
        (b"x" * PAGE + bytes(5 * PAGE), PAGE),
        (b"x" * PAGE + bytes(3 * PAGE) + b"y" + bytes(2 * PAGE), 5 * PAGE),
        (bytes(3 * PAGE), PAGE),
        (b"x" * PAGE + bytes(100), PAGE),
    ):
        files.put("d/s", content)
        release(files, "d/s", PAGE, len(content))
        assert files.content("d/s") == content[:kept]


@given(data=st.binary(max_size=40), zeros=st.integers(0, 200_000), start=st.integers(0, 10))
def test_data_ends_behind_the_last_byte_that_is_not_zero(data: bytes, zeros: int, start: int) -> None:
    files = SimulatedFiles()
    content = data + bytes(zeros)
    files.put("s", content)
    start = min(start, len(content))
    found = data_end(files, files.open("s"), start, len(content))
    assert found == max(start, len(data.rstrip(b"\0")))


@settings(max_examples=300, deadline=None)
@given(
    sector_bytes=st.sampled_from([512, 4096]),
    durable=st.integers(0, 3),
    marked=st.booleans(),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    kept=st.lists(st.booleans(), min_size=1, max_size=40),
    zeros=st.integers(0, 3),
)
def test_every_tail_in_preallocated_space(
    sector_bytes: int, durable: int, marked: bool, sizes: list[int], kept: list[bool], zeros: int
) -> None:
    """Of chunks that were not synced any sectors are there, the others are the zeros of before: what was acknowledged
    is kept, nothing is called damaged, and what was not is whole or not there."""
    files = SimulatedFiles(sector_bytes=sector_bytes)
    partition = with_room(files, 1)
    for _ in range(durable):
        group(partition)
    if marked:
        mark(partition)
    committed = partition.committed_lsn
    for size in sizes:
        append(partition, some_records(size, partition.next_lsn), 1_700_000_000_000_000 + 4_000_000_000)
    unsynced = partition.take_group()
    assert unsynced is not None
    calls = len(files.calls)
    files.fail = {calls + n: errno.EIO for n in range(1, 30)}  # all but the first write fail
    files.choose = lambda n: n - 1
    unsynced.run()
    answers = iter(kept * 200)
    after = files.after_power_loss(lambda n: 2 if n == 4 else int(next(answers)))
    store = opened(after, seed=9)
    found, gaps = everything(store.partitions[0])
    assert gaps == [] == store.recovered[0].gaps
    assert len(found) >= committed
    assert records_of(found) == some_records(len(found))
    assert [f for f in verify(after, "data") if f.severity != "note"] == []


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("part", [0, 2])
def test_without_room_groups_are_appended_as_before(marked: bool, part: int) -> None:
    """part: of the zeros, so much fits"""
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    group(partition)
    if marked:
        mark(partition)
    files.room_bytes = 64 * PIECE_BYTES_MIN  # a piece would be worth it ...
    size = size_of(files)
    files.fail = {len(files.calls): errno.ENOSPC}  # ... and is refused
    files.choose = lambda n: n // part if part else 0
    assert preallocate(partition, always=True), "no failure"
    assert size_of(files) == size, "what fitted is given back"
    for _ in range(5):
        group(partition)
        assert not partition.wants_room, "not tried again in this segment"
    assert len(segments(files)) == 1


def test_a_publish_that_fits_is_never_refused_for_room_ahead() -> None:
    """As many groups fit on a disk with preallocation as without."""
    fitted = []
    for allocates in (False, True):
        files = SimulatedFiles()
        partition = opened(files).partitions[0]
        files.room_bytes = 3 * MIB
        groups = 0
        while True:
            append(partition, some_records(3, partition.next_lsn))
            if not write(partition):
                break
            groups += 1
            if allocates:
                preallocate(partition)
        fitted.append(groups)
    # Where the last group meets the end of the disk, the new segment that is tried takes a page more or less.
    assert abs(fitted[1] - fitted[0]) <= 2, fitted
    assert fitted[0] > 300


@pytest.mark.parametrize("call", [0, 1])
def test_a_failed_write_or_sync_of_zeros_ends_the_segment(call: int) -> None:
    """What the file says from then on is not known: nothing more is written to it."""
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    group(partition)
    files.fail = {len(files.calls) + call: errno.EIO}
    assert not preallocate(partition, always=True)
    size = size_of(files)
    group(partition)
    assert len(segments(files)) == 2 and len(files.content(segments(files)[0])) == size
    after = files.after_power_loss(lambda n: 0)
    assert records_of(everything(opened(after, seed=3).partitions[0])[0]) == some_records(6)


def test_records_that_wait_go_to_the_next_segment_when_zeros_fail() -> None:
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    group(partition)
    partition.wants_room = 1
    room = partition.take_preallocation()
    append(partition, some_records(3, 3))
    assert room is not None and partition.take_group() is None, "one at a time"
    files.fail = {len(files.calls): errno.EIO}
    room.run()
    assert partition.complete(room) is not None
    assert write(partition)
    found, gaps = everything(partition)
    assert records_of(found) == some_records(6) and gaps == []


def test_a_truncation_that_was_not_synced_may_not_have_happened() -> None:
    files = SimulatedFiles()
    files.make_directory("d")
    handle = files.create("d/f")
    files.write(handle, 0, [b"x" * 3 * SECTOR])
    files.sync(handle)
    files.sync_directory("d")
    files.sync_directory("")
    files.truncate(handle, SECTOR)
    assert files.at_stake() == 1
    assert len(files.after_power_loss(lambda n: 0).content("d/f")) == 3 * SECTOR
    assert len(files.after_power_loss(lambda n: 1).content("d/f")) == SECTOR
    files.sync(handle)
    assert len(files.after_power_loss(lambda n: 0).content("d/f")) == SECTOR
