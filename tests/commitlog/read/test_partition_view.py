"""An index tells a reader which parts of a segment it need not read for some topics, and never leaves out what cannot
be told."""

from collections.abc import Callable

from commitlog.read.partition_view import PartitionView
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import append, index, mark, opened, segments, view, viewed, write


def written(groups: int, *, rare_every: int = 10) -> SimulatedFiles:
    """Groups of 10 records in segments of some groups, the last one not sealed; topic `rare` in every tenth group."""
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=20_000).partitions[0]
    for group in range(groups):
        records = [(b"often/%d" % (n % 3), b"x" * 100) for n in range(9)]
        records.append((b"rare" if group % rare_every == 0 else b"often/9", b"%d" % group))
        append(partition, records)
        write(partition)
    index(partition)
    mark(partition)
    return files.after_kill()


def spans(
    found: PartitionView, wants: Callable[[bytes], bool], start: int = 0, end: int | None = None
) -> list[tuple[int, int]]:
    return list(found.spans_of(start, found.end_lsn if end is None else end, wants))


def rare(topic: bytes) -> bool:
    return topic == b"rare"


def test_only_chunks_with_a_wanted_topic_are_read_of_what_has_an_index() -> None:
    found = view(written(200))
    parts = spans(found, rare)
    everything = [seen.lsn for seen in viewed(found)[0] if seen.topic == b"rare"]
    within = [seen.lsn for part in parts for seen in viewed(found, *part)[0] if seen.topic == b"rare"]
    assert within == everything == [10 * group + 9 for group in range(0, 200, 10)]
    last = found.segments()[-1]
    assert parts[-1][1] == found.end_lsn and parts[-1][0] <= last.base_lsn, "the last one has no index yet"
    read = sum(end - start for start, end in parts if end <= last.base_lsn)
    assert read <= 10 * len([lsn for lsn in everything if lsn < last.base_lsn])
    assert spans(found, lambda topic: True) == [(0, found.end_lsn)]
    assert all(start >= last.base_lsn for start, _ in spans(found, lambda topic: False))
    assert spans(found, rare, 505, 505) == []


def test_a_small_part_of_a_segment_is_read_without_its_index() -> None:
    found = view(written(200))
    assert spans(found, rare, 11, 14) == [(11, 14)]


def test_a_chunk_that_was_lost_when_the_index_was_made_is_among_what_is_read() -> None:
    files = written(200)
    path = segments(files)[1]
    place = view(files).segments()[1].places[2]
    files.remove(path.replace(".seg", ".idx"))
    handle = files.open(path, write=True)
    files.write(handle, place.position + 130, [b"\xff" * 40])  # its rows
    files.close(handle)
    found = view(files)
    parts = spans(found, rare)
    assert any(start <= place.base_lsn and place.next_lsn <= end for start, end in parts)
    lost = [gap for part in parts for gap in viewed(found, *part)[1]]
    assert [(gap.base_lsn, gap.next_lsn) for gap in lost] == [(place.base_lsn, place.next_lsn)]


def test_a_segment_that_is_gone_is_among_what_is_read() -> None:
    files = written(200)
    first, second = view(files).segments()[1:3]
    files.remove(first.path)
    parts = spans(view(files), rare)
    assert any(start <= first.base_lsn and second.base_lsn <= end for start, end in parts)
