"""Whole segments go, the oldest first; numbers stay. docs/reference/log-format.md, "topics.snap" and "MANIFEST"."""

import errno

import pytest

from commitlog import Partition, StreamSpec
from commitlog.disk.export_marker import NAME as EXPORTED
from commitlog.disk.export_marker import exported_lsn, exported_to, write_exported
from commitlog.index.segments import SegmentFile
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from commitlog.write.retention import segments_to_drop
from tests.commitlog.records import (
    DIRECTORY,
    NOW,
    append,
    everything,
    index,
    opened,
    records_of,
    segments,
    some_records,
    view,
    viewed,
    write,
)

HOUR = 3_600_000_000


def segment(first_ts: int, size: int, *, finished: bool = True) -> SegmentFile:
    made = SegmentFile("s", 0, 1, first_ts)
    made.logical_end = size
    made.end_lsn = 10 if finished else None
    return made


@pytest.mark.parametrize(
    ("sizes", "bytes_max", "dropped"),
    [
        ([10, 10, 10], 30, 0),
        ([10, 10, 10], 29, 1),
        ([10, 10, 10], 20, 1),
        ([10, 10, 10], 5, 2),  # the last one stays
        ([10], 1, 0),
        ([], 1, 0),
    ],
)
def test_a_size_limit_is_strict(sizes: list[int], bytes_max: int, dropped: int) -> None:
    spec = StreamSpec("s", ("#",), retention_bytes_max=bytes_max)
    assert segments_to_drop([segment(NOW, size) for size in sizes], spec, NOW) == dropped


@pytest.mark.parametrize(
    ("ages", "dropped"),
    [
        ([5, 4, 3], 2),  # the newest record of a segment is no newer than the first of the next
        ([5, 4, 1], 1),
        ([5, 1, 1], 0),
        ([0, 0, 0], 0),
    ],
)
def test_a_segment_goes_when_its_newest_record_is_too_old(ages: list[int], dropped: int) -> None:
    spec = StreamSpec("s", ("#",), retention_seconds_max=2 * 3600)
    assert segments_to_drop([segment(NOW - age * HOUR, 1) for age in ages], spec, NOW) == dropped


def test_what_is_written_to_stays_and_all_behind_it() -> None:
    spec = StreamSpec("s", ("#",), retention_bytes_max=1)
    assert segments_to_drop([segment(NOW, 10), segment(NOW, 10, finished=False), segment(NOW, 10)], spec, NOW) == 1


def trimmed(files: SimulatedFiles, *, finish: bool = True) -> Partition:
    """A log of 120 records, of which t/only has the first one, with a retention of few segments."""
    partition = opened(files, segment_bytes_max=12_000, retention_bytes_max=30_000).partitions[0]
    append(partition, [(b"t/only", b"once")])
    for first in range(0, 120, 10):
        append(partition, some_records(10, first))
        write(partition)
    index(partition)
    if finish:
        removal = partition.take_retention(NOW)
        assert removal is not None
        assert partition.take_retention(NOW) is None, "one at a time"
        removal.run()
        partition.removed(removal)
    return partition


def test_the_oldest_go_and_the_rest_reads_as_before() -> None:
    files = SimulatedFiles()
    partition = trimmed(files)
    first = partition.first_lsn
    assert first > 50
    assert records_of(everything(partition)[0]) == some_records(121 - first, first - 1)
    assert sum(files.size(path) for path in segments(files)) <= 30_000 + 8192
    names = files.names(DIRECTORY)
    assert [n for n in names if n.endswith(".idx") and n[:-4] + ".seg" not in names] == []
    seen = view(files.beside())
    assert seen.first_lsn == first and viewed(seen)[1] == []
    again = opened(files.after_kill()).partitions[0]
    assert again.first_lsn == first and everything(again)[0] == everything(partition)[0]
    assert partition.find_offset(b"t/0", 0).run() == next(s.lsn for s in everything(partition)[0] if s.topic == b"t/0")


def test_a_topic_whose_records_are_gone_keeps_its_number_and_its_offset() -> None:
    files = SimulatedFiles()
    partition = trimmed(files)
    number = partition.topic_ids[b"t/only"]
    for after in (files.after_kill(), files.after_power_loss(lambda n: 0)):
        again = opened(after, seed=500).partitions[0]
        assert again.topic_ids[b"t/only"] == number
        append(again, [(b"t/only", b"again")])
        write(again)
        assert everything(again)[0][-1].offset == 1


def test_a_segment_that_is_not_indexed_yet_waits() -> None:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=12_000, retention_bytes_max=30_000).partitions[0]
    for first in range(0, 120, 10):
        append(partition, some_records(10, first))
        write(partition)
    assert partition.take_retention(NOW) is None
    index(partition)
    assert partition.take_retention(NOW) is not None


def test_what_waits_for_a_majority_stays() -> None:
    """A copy that comes back is sent it from here; nobody has acknowledged it yet."""
    partition = opened(SimulatedFiles(), segment_bytes_max=12_000, retention_bytes_max=30_000).partitions[0]
    partition.note_replicated(0)
    for first in range(0, 120, 10):
        append(partition, some_records(10, first))
        write(partition)
    index(partition)
    assert partition.take_retention(NOW) is None and partition.take_removal(120) is None
    ends = [segment.end_lsn for segment in partition.segments.files]
    assert ends[0] is not None and ends[1] is not None
    partition.note_replicated(ends[1] - 1)
    removal = partition.take_retention(NOW)
    assert removal is not None and removal.first_lsn == ends[0]


def test_a_removal_that_stops_anywhere_is_finished_at_the_next_start() -> None:
    """At each of its calls: it fails, or the power goes. Nothing is a gap, and nothing is left lying about."""
    files = SimulatedFiles()
    begin = len((trimmed(files, finish=False), files.calls)[1])
    files = SimulatedFiles()
    trimmed(files)
    end = len(files.calls)
    written = [(b"t/only", b"once"), *some_records(120)]
    for call in range(begin, end):
        for power in (False, True):
            files = SimulatedFiles()
            partition = trimmed(files, finish=False)
            removal = partition.take_retention(NOW)
            assert removal is not None
            files.fail = dict.fromkeys(range(call, call + 99), errno.EIO)
            with pytest.raises(OSError):
                removal.run()
            partition.removed(removal)
            found, gaps = everything(partition)
            assert gaps == [] and records_of(found) == written[found[0].lsn :]
            files = files.after_power_loss(lambda n: 1) if power else files.after_kill()
            store = opened(files, seed=500)
            found, gaps = everything(store.partitions[0])
            assert gaps == [] == store.recovered[0].gaps
            assert records_of(found) == written[found[0].lsn :]
            kept = {seen.lsn for seen in found}
            assert kept == set(range(store.partitions[0].first_lsn, 121))
            assert all(int(path.rpartition("/")[2][:20]) >= min(kept) for path in segments(files))
            assert [f for f in verify(files, "data") if f.severity == "error"] == []


def test_what_is_not_exported_stays_up_to_so_many_bytes() -> None:
    """And what sessions want, likewise: each has its own bound, and the one that wants more has it."""
    first = {}
    for unexported, bytes_max in ((None, 0), (0, 1 << 30), (50, 1 << 30), (0, 40_000), (1 << 40, 1 << 30)):
        partition = trimmed(SimulatedFiles(), finish=False)
        removal = partition.take_retention(NOW, None, 100, 0, unexported, bytes_max)
        first[unexported, bytes_max] = 0 if removal is None else removal.first_lsn
    free = first[None, 0]
    assert free > 50 and first[1 << 40, 1 << 30] == free
    assert first[0, 1 << 30] == 0, "nothing goes before it is exported"
    assert 0 < first[50, 1 << 30] <= 50, "what is exported goes"
    assert 0 < first[0, 40_000] < free, "no more than so many bytes wait"


def test_an_exporters_note_is_read_as_it_was_written_and_damaged_says_nothing() -> None:
    files = SimulatedFiles()
    opened(files)
    assert exported_lsn(files, DIRECTORY) == 0 and exported_to(files, DIRECTORY) == ""
    write_exported(files, DIRECTORY, 4711)
    assert exported_to(files, DIRECTORY) == ""
    write_exported(files, DIRECTORY, 4711, "/mnt/a lake é")
    assert exported_to(files, DIRECTORY) == "/mnt/a lake é"
    assert exported_lsn(files, DIRECTORY) == exported_lsn(files.after_power_loss(lambda n: 0), DIRECTORY) == 4711
    handle = files.open(f"{DIRECTORY}/{EXPORTED}", write=True)
    files.write(handle, 12, [b"9"])
    assert exported_lsn(files, DIRECTORY) == 0
