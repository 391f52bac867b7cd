"""Append, groups, rolls, seals and reads of one partition. docs/reference/log-format.md, "Writing"."""

import pytest

from commitlog import LogError, NotInMemory, OffsetTrimmed, Partition
from commitlog.chunk import FLAG_QOS, FLAG_TOPICS, FLAG_UNIFORM, HEADER_BYTES, MARK, SEAL
from commitlog.format.chunk_layout import MERGED_BYTES_MAX, pieced
from commitlog.format.segment import SEGMENT_HEADER_BYTES, opening, walk
from commitlog.index.index import encode_index, index_path, read_segment
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    NOW,
    append,
    everything,
    index,
    mark,
    opened,
    records_of,
    segments,
    some_records,
    write,
)


def made(**settings: int) -> tuple[SimulatedFiles, Partition]:
    files = SimulatedFiles()
    return files, opened(files, **settings).partitions[0]  # type: ignore[arg-type]


def headers(files: SimulatedFiles, path: str) -> list[tuple[int, object]]:
    handle = files.open(path)
    return list(walk(files, handle, opening(files, handle, path).header.salt, SEGMENT_HEADER_BYTES, files.size(path)))


def test_lsns_are_dense_per_partition_and_offsets_per_topic() -> None:
    _, partition = made()
    append(partition, [(b"a", b"1"), (b"b", b"2")])
    append(partition, [(b"a", b"3")])
    assert (partition.next_lsn, partition.written_lsn, partition.committed_lsn) == (3, 0, 0)
    write(partition)
    found, _ = everything(partition)
    assert [(seen.lsn, seen.topic, seen.offset) for seen in found] == [
        (0, b"a", 0),
        (1, b"b", 0),
        (2, b"a", 1),
    ]


def test_nothing_is_committed_before_its_group_was_taken_in() -> None:
    _, partition = made()
    append(partition, some_records(3))
    group = partition.take_group()
    assert group is not None and partition.take_group() is None, "one group at a time"
    append(partition, some_records(3, 3))
    group.run()
    assert partition.committed_lsn == 0
    assert partition.complete(group) is None
    assert partition.committed_lsn == partition.durable_lsn == 3
    assert partition.pending_bytes > 0
    write(partition)
    assert partition.committed_lsn == 6 and partition.pending_bytes == 0
    assert partition.take_group() is None


def test_time_never_runs_backwards_in_a_partition() -> None:
    files, partition = made()
    for ts in (NOW, NOW - 10_000_000, NOW + 5):
        append(partition, [(b"t", b"x")], ts)
    write(partition)
    assert [seen.ts for seen in everything(partition)[0]] == [NOW, NOW, NOW + 5]
    again = opened(files.after_kill()).partitions[0]
    append(again, [(b"t", b"x")], NOW - 1)
    write(again)
    assert everything(again)[0][-1].ts == NOW + 5


def test_a_topic_that_was_never_added_is_our_bug() -> None:
    _, partition = made()
    with pytest.raises(LogError, match="row 0 has a topic id that was never added"):
        partition.append(bytearray(32), b"f", 1, 0, NOW)


def test_a_group_becomes_one_chunk_that_says_the_same() -> None:
    files, partition = made()
    append(partition, some_records(3), NOW, "dev", {1: 9}, FLAG_QOS | FLAG_UNIFORM)
    append(partition, some_records(3, 3), NOW + 7, "other", {0: 5}, FLAG_QOS | FLAG_UNIFORM)
    write(partition)
    ((_, header),) = headers(files, segments(files)[0])
    assert (header.count, header.flags) == (6, FLAG_QOS | FLAG_UNIFORM | FLAG_TOPICS)  # type: ignore[attr-defined]
    found, _ = everything(partition)
    assert records_of(found) == some_records(6)
    assert [seen.ts - NOW for seen in found] == [0, 0, 0, 7, 7, 7]
    assert [seen.client_id for seen in found] == [b"dev"] * 3 + [b"other"] * 3
    assert [seen.tag for seen in found] == [0, 9, 0, 5, 0, 0]


def test_chunks_too_large_or_too_far_apart_are_not_joined() -> None:
    _, partition = made(segment_seconds_max=1 << 30)
    big = b"x" * 400_000
    chunks = [append(partition, [(b"t", big[:1])], NOW)]
    chunks += [append(partition, [(b"t", b"y" * 16_000) for _ in range(30)], NOW) for _ in range(3)]
    pieces = pieced(chunks)
    assert [len(piece) for piece in pieces] == [3, 1]
    assert all(sum(len(c.frames) for c in piece) <= MERGED_BYTES_MAX for piece in pieces)
    late = append(partition, [(b"t", b"z")], NOW + 4_000_000_000)
    assert pieced([chunks[0], late]) == [[chunks[0]], [late]]
    assert write(partition)
    assert len(everything(partition)[0]) == 92


def test_each_group_of_class_disk_ends_a_page_and_one_sync_covers_it() -> None:
    files, partition = made()
    for first in (0, 3, 6):
        append(partition, some_records(3, first))
        before = len(files.calls)
        write(partition)
        path = segments(files)[0]
        assert [name for name, _ in files.calls[before:]][-2:] == ["write", "sync"]
        assert files.size(path) % 4096 == 0
    files, partition = SimulatedFiles(), opened(SimulatedFiles(), durability="process").partitions[0]
    append(partition, some_records(3))
    write(partition)
    before = len(files.calls)
    append(partition, some_records(3, 3))
    write(partition)
    assert "sync" not in [name for name, _ in files.calls[before:]]
    assert partition.committed_lsn == 6 and partition.durable_lsn == 0


def test_large_groups_begin_and_end_on_a_page() -> None:
    files, partition = made(direct_bytes_min=2000)
    append(partition, some_records(2))
    write(partition)
    append(partition, some_records(100, 2))
    write(partition)
    for at, header in headers(files, segments(files)[0]):
        if header.count > 50:  # type: ignore[attr-defined]
            assert at % 4096 == 0 and header.total_len % 4096 == 0  # type: ignore[attr-defined]
    assert records_of(everything(partition)[0]) == some_records(102)


def test_segments_roll_by_size_and_by_age_and_are_sealed() -> None:
    files, partition = made(segment_bytes_max=20_000, segment_seconds_max=60)
    for number in range(12):
        append(partition, some_records(10, 10 * number), NOW + number)
        write(partition)
    assert len(segments(files)) == 3
    append(partition, some_records(10, 120), NOW + 61_000_000)
    write(partition)
    assert len(segments(files)) == 4
    for path in segments(files)[:-1]:
        assert headers(files, path)[-1][1].kind == SEAL  # type: ignore[attr-defined]
        assert files.size(path) <= 20_000 + 2 * 4096
    assert records_of(everything(partition)[0]) == some_records(130)


def test_an_index_from_the_writer_is_what_its_segment_gives() -> None:
    files, partition = made(segment_bytes_max=20_000)
    for number in range(12):
        append(partition, some_records(10, 10 * number), NOW + number, f"dev{number}")
        write(partition)
    index(partition)
    indexed = [path for path in segments(files) if files.exists(index_path(path))]
    assert len(indexed) == 2
    for segment in partition.segments.files[:2]:
        again = encode_index(read_segment(files, segment.path), segment.end_lsn or 0, segment.logical_end)
        assert files.content(index_path(segment.path)) == again
        assert segment.places == [], "its places are found in the index now"
    assert records_of(everything(partition)[0]) == some_records(120)


def test_an_idle_partition_writes_down_what_is_committed_once() -> None:
    files, partition = made()
    assert partition.take_mark(NOW) is None
    append(partition, some_records(3))
    assert partition.take_mark(NOW) is None, "a group is to be written"
    write(partition)
    mark(partition)
    assert partition.take_mark(NOW) is None
    last = headers(files, segments(files)[0])[-1][1]
    assert (last.kind, last.durable_lsn) == (MARK, 3)  # type: ignore[attr-defined]


def test_names_are_told_in_two_chunks_of_each_segment_and_no_more() -> None:
    files, partition = made(segment_bytes_max=20_000)
    for number in range(12):
        append(partition, some_records(3, 3 * number), NOW, "dev")
        write(partition)
    for path in segments(files):
        told = [header.aux_len > 0 for _, header in headers(files, path) if header.count]  # type: ignore[attr-defined]
        assert told == ([True, True] + [False] * len(told))[: len(told)]


def test_a_client_keeps_its_number_as_long_as_the_log_knows_it() -> None:
    files, partition = made()
    assert [partition.add_publisher(name) for name in ("a", "b", "a")] == [1, 2, 1]
    append(partition, some_records(1), client_id="b")
    write(partition)
    again = opened(files.after_kill()).partitions[0]
    assert again.add_publisher("b") == 2
    assert again.add_publisher("c") == 3


def test_reads_take_from_memory_what_is_there_and_say_when_it_is_not() -> None:
    _, partition = made(hot=1 << 20)
    for first in (0, 10, 20):
        append(partition, some_records(10, first))
    assert [chunk.base_lsn for chunk in partition.read(15, 1 << 20)] == [10, 20]
    assert [chunk.base_lsn for chunk in partition.read(15)] == [10]
    assert partition.read(30) == []
    _, partition = made(hot=0)
    for first in range(0, 1000, 10):
        append(partition, some_records(10, first))
        write(partition)
    with pytest.raises(NotInMemory):
        partition.read(0)
    assert len(partition._hot) < 100, "what is on disk is let go"


def test_a_cold_read_is_bounded_crosses_segments_and_ends_at_what_is_written() -> None:
    _, partition = made(segment_bytes_max=20_000)
    for first in range(0, 120, 10):
        append(partition, some_records(10, first))
        write(partition)
    append(partition, some_records(10, 120))
    few = partition.cold_read(35, 1).run()
    assert [(piece.base_lsn, piece.next_lsn) for piece in few] == [(30, 40)]
    all_of_it = partition.cold_read(0, 1 << 20).run()
    assert [piece.base_lsn for piece in all_of_it] == list(range(0, 120, 10))
    assert partition.cold_read(120).run() == []


def test_what_retention_took_is_told_with_where_to_go_on() -> None:
    _, partition = made(segment_bytes_max=12_000, retention_bytes_max=30_000)
    for first in range(0, 120, 10):
        append(partition, some_records(10, first))
        write(partition)
    index(partition)
    removal = partition.take_retention(NOW)
    assert removal is not None
    cold = partition.cold_read(0, 1 << 20)
    removal.run()
    partition.removed(removal)
    with pytest.raises(OffsetTrimmed, match=f"resume there .{partition.first_lsn} records lost") as trimmed:
        partition.read(0)
    assert trimmed.value.first_lsn == partition.first_lsn > 0
    pieces = cold.run()  # begun before, run after
    assert pieces[0].base_lsn == 0 and pieces[-1].next_lsn == 120
    assert partition.cold_read(0, 1).run()[0].next_lsn == partition.first_lsn


def test_a_group_needs_no_more_than_it_writes() -> None:
    files, partition = made()
    append(partition, some_records(1))
    write(partition)
    size = files.size(segments(files)[0])
    assert size == SEGMENT_HEADER_BYTES + 4096 and HEADER_BYTES == 128
