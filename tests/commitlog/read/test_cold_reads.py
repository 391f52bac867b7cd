"""How often a file is read for many chunks; where a time or an offset is.

Before and after segments are finished, indexed, and read by another process."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog import Gap
from commitlog.format.segment import WALK_BYTES
from commitlog.read.cold_reads import BLOCK_BYTES_MAX
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import NOW, append, everything, index, mark, opened, segments, view, write

GROUPS = st.lists(
    st.tuples(
        st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=5),
        st.sampled_from([0, 0, 1, 1000, 5_000_000]),  # µs later: equal stamps are common
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=80)
@given(groups=GROUPS, indexed=st.booleans(), hot=st.sampled_from([0, 1 << 20]), unwritten=st.booleans())
def test_a_time_is_found_as_in_a_list(
    groups: list[tuple[list[bytes], int, bool]], indexed: bool, hot: int, unwritten: bool
) -> None:
    """Exactly the first record with that time or a later one: with equal stamps, the first of the equal ones."""
    files = SimulatedFiles()
    store = opened(files, segment_bytes_max=12_000, hot=hot)
    partition = store.partitions[0]
    now, times = NOW, []
    for topics, later, written in groups:
        now += later
        append(partition, [(topic, b"x") for topic in topics], now)
        times += [now] * len(topics)
        if written:
            write(partition)
    if not unwritten:
        write(partition)
    if indexed:
        index(partition)
    for asked in sorted({NOW - 1, *times, *(t + 1 for t in times), *(t - 1 for t in times)}):
        expected = next((lsn for lsn, ts in enumerate(times) if ts >= asked), len(times))
        assert partition.find_time(asked).run() == expected
    write(partition)
    for seen in (view(files.beside()), opened(files.after_kill(), segment_bytes_max=12_000).partitions[0]):
        for asked in sorted({NOW - 1, *times, *(t + 1 for t in times)}):
            expected = next((lsn for lsn, ts in enumerate(times) if ts >= asked), len(times))
            found = seen.find_time(asked)
            assert (found if isinstance(found, int) else found.run()) == expected


@settings(deadline=None, max_examples=80)
@given(groups=GROUPS, indexed=st.booleans(), hot=st.sampled_from([0, 1 << 20]))
def test_an_offset_is_found_as_in_a_list(groups: list[tuple[list[bytes], int, bool]], indexed: bool, hot: int) -> None:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=12_000, hot=hot).partitions[0]
    places: dict[bytes, list[int]] = {b"a": [], b"b": [], b"c": []}
    for topics, _, written in groups:
        for number, topic in enumerate(topics):
            places[topic].append(partition.next_lsn + number)
        append(partition, [(topic, b"x") for topic in topics])
        if written:
            write(partition)
    if indexed:
        index(partition)
    end = partition.next_lsn
    for topic, lsns in places.items():
        for offset in range(-1, len(lsns) + 2):
            expected = lsns[max(0, offset)] if offset < len(lsns) and lsns else end
            assert partition.find_offset(topic, offset).run() == expected
    assert partition.find_offset(b"unknown", 0).run() == end
    write(partition)
    again = view(files)
    for topic, lsns in places.items():
        for offset in range(-1, len(lsns) + 2):
            assert again.find_offset(topic, offset) == (lsns[max(0, offset)] if offset < len(lsns) and lsns else end)
    assert again.find_offset(b"unknown", 2**70) == end


def test_a_time_is_never_found_behind_lost_records_that_might_have_it() -> None:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=1 << 20).partitions[0]
    for group in range(4):
        append(partition, [(b"t", b"%d" % n) for n in range(5)], NOW + 1000 * group)
        write(partition)
    files = files.after_kill()
    files.damage(segments(files)[0], 4096 + 4096 + 20)  # the header of the second chunk
    partition = opened(files).partitions[0]
    assert [gap.base_lsn for gap in everything(partition)[1]] == [5]
    assert partition.find_time(NOW + 1).run() == 5
    assert partition.find_time(NOW + 1001).run() == 5, "what is lost might have been at or after it"
    assert partition.find_time(NOW + 2001).run() == 15
    assert partition.find_offset(b"t", 3).run() == 3
    assert partition.find_offset(b"t", 7).run() == 10, "the next one that is kept"
    assert partition.find_offset(b"t", 12).run() == 12
    index(partition)
    for offset, lsn in ((0, 0), (3, 3), (4, 4), (5, 10), (9, 10), (10, 10), (12, 12), (19, 19), (20, 20)):
        assert partition.find_offset(b"t", offset).run() == lsn, offset
        assert view(files).find_offset(b"t", offset) == lsn, offset


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("indexed", [False, True])
def test_a_file_is_read_once_for_many_small_chunks(marked: bool, indexed: bool) -> None:
    """After a crash there is no index, and the positions come from the headers. marked: marks are between the chunks"""
    count, size = 300, 1 << 20
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=1 << 30).partitions[0]
    for number in range(count):
        append(partition, [(b"t", b"%d" % number)])
        write(partition)
        if marked:
            mark(partition)
    files = files.after_kill()
    partition = opened(files).partitions[0]
    if indexed:
        index(partition)
    files.looks.clear()
    lsn = reads = 0
    while lsn < count:
        found = partition.cold_read(lsn, size).run()
        assert [one.base_lsn for one in found] == list(range(lsn, found[-1].next_lsn))
        lsn, reads = found[-1].next_lsn, reads + 1
    of_file = sum(name == "read" for name, _ in files.looks)
    file_bytes = 4096 * count * (1 + marked)
    of_positions = 2 if indexed else file_bytes // WALK_BYTES + 2
    at_most = file_bytes // BLOCK_BYTES_MAX + 4 * reads + of_positions
    assert of_file <= at_most < count // 4


def test_a_chunk_that_is_damaged_is_the_only_one_lost_of_those_read_with_it() -> None:
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    for number in range(9):
        append(partition, [(b"t", b"%d" % number)])
        write(partition)
    place = partition.segments.active.places[4]
    files.damage(segments(files)[0], place.position + 140)
    found = partition.cold_read(0, 1 << 20).run()
    assert [(one.base_lsn, isinstance(one, Gap)) for one in found] == [(n, n == 4) for n in range(9)]
