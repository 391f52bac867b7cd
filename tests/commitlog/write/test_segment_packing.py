"""Packing of finished segments: the same records in fewer bytes, whoever reads, whatever fails."""

import errno
from collections.abc import Callable

import pytest

from commitlog import Gap, Partition
from commitlog.format.manifest import decode_edits
from commitlog.format.segment import PACKED
from commitlog.index.index import index_path
from commitlog.log.packing import replaced, take_packing, take_replacement
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from commitlog.read.verify import PartitionCheck, verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    NOW,
    append,
    everything,
    frame,
    index,
    mark,
    opened,
    pack,
    some_records,
    viewed,
    write,
)

SEGMENT_BYTES = 100_000
LONE = 120  # messages, two and a half segments
FEW = 40  # one and a half
HELD = "pid 1\n"  # of a live process


def lone(files: SimulatedFiles, count: int = LONE, **settings: object) -> Partition:
    """A log of messages that came alone, each in a group of its own and followed by a mark."""
    size = 2 * SEGMENT_BYTES if settings.get("durability") == "process" else SEGMENT_BYTES
    partition = opened(files, segment_bytes_max=size, **settings).partitions[0]  # type: ignore[arg-type]
    more(partition, 0, count)
    return partition


def more(partition: Partition, first: int, count: int) -> None:
    for n in range(first, first + count):
        tags = {0: 7 + n} if n % 5 == 0 else None
        append(partition, some_records(1, n), NOW + 100_000 * n, f"device-{n % 7}", tags)
        write(partition)
        mark(partition)
    index(partition)


def names(files: SimulatedFiles) -> list[str]:
    return [name for name in files.names(DIRECTORY) if name.endswith(".seg")]


def findings(files: SimulatedFiles) -> list[object]:
    return [found for found in verify(files, "data") if found.severity != "note"]


@pytest.mark.parametrize("durability", ["disk", "process"])
def test_records_stay_what_they_are_in_a_fraction_of_the_bytes(durability: str) -> None:
    files = SimulatedFiles()
    partition = lone(files, 2000 if durability == "process" else LONE, durability=durability)
    before, gaps = everything(partition)
    sizes = [segment.disk_bytes for segment in partition.segments.files]
    assert gaps == [] and len(sizes) >= 3
    assert pack(partition) == len(sizes) - 1
    assert everything(partition) == (before, [])
    now = [segment.disk_bytes for segment in partition.segments.files]
    assert now[-1] == sizes[-1], "the active one is left alone"
    own = sum(
        32 + len(frame(seen.topic, seen.payload)) for seen in before if seen.lsn < partition.segments.files[-1].base_lsn
    )
    headers = 4096 * (len(now) - 1)
    assert sum(now[:-1]) - headers <= 2 * own
    assert pack(partition) == 0, "they were looked at"
    assert findings(files.beside()) == []
    again = opened(files.after_kill(), durability=durability, segment_bytes_max=SEGMENT_BYTES, seed=5)
    assert everything(again.partitions[0]) == (before, [])
    assert again.recovered[0].gaps == again.recovered[0].short == again.recovered[0].repaired == []
    more(again.partitions[0], before[-1].lsn + 1, 1)
    assert pack(again.partitions[0]) == 1, "the one that the kill has ended; packed ones are not packed again"
    assert everything(again.partitions[0])[0][:-1] == before


def test_who_listed_the_log_before_reads_on() -> None:
    """Each way to read, by a view, a task and a search that were made before the packing, and files opened after it."""
    files = SimulatedFiles()
    partition = lone(files, holder=HELD)
    before, _ = everything(partition)
    topic, times = before[40].topic, [seen.ts for seen in before]
    fresh, used = seen_by_another(files), seen_by_another(files)
    assert viewed(used)[0] == before[: used.end_lsn], "the last one may await its mark"
    used.segments()
    tasks = [partition.cold_read(lsn, 1) for lsn in (0, 41, 55)]
    search, offset = partition.find_time(times[55]), partition.find_offset(topic, before[40].offset)
    assert pack(partition) == 4
    for view in (used, fresh):
        assert viewed(view) == (before[: view.end_lsn], [])
        assert view.find_time(times[30]) == 30 and view.find_time(times[77] - 1) == 77
        assert view.find_offset(topic, before[40].offset) == 40
        assert set(view.publishers(10, 60).values()) >= {b"device-%d" % n for n in range(7)}
        assert [(found.base_lsn, found.end_lsn) for found in view.segments()] == [
            (segment.base_lsn, segment.end_lsn or view.end_lsn) for segment in partition.segments.files
        ]
        assert [found.last_ts for found in view.segments()][:-1] == [
            times[s.base_lsn - 1] for s in partition.segments.files[1:]
        ]
        assert view.end_within(0, 100, 1) >= 1
        assert spans(view, topic) >= {seen.lsn for seen in before if seen.topic == topic}
    for task, lsn in zip(tasks, (0, 41, 55), strict=True):
        found = task.run()[0]
        assert not isinstance(found, Gap) and found.base_lsn <= lsn < found.next_lsn
    assert search.run() == 55 and offset.run() == 40
    assert viewed(seen_by_another(files))[0] == before[: used.end_lsn]


def seen_by_another(files: SimulatedFiles) -> PartitionView:
    return LogReader(files.beside(), "data").partitions()[0]


def spans(view: PartitionView, topic: bytes) -> set[int]:
    return {lsn for first, end in view.spans_of(0, view.end_lsn, topic.__eq__) for lsn in range(first, end)}


def test_client_ids_that_were_read_of_a_part_are_not_those_of_the_packed_file() -> None:
    files = SimulatedFiles()
    partition = lone(files, 10, holder=HELD)
    view = seen_by_another(files)
    assert len(view.publishers(0, 10)) == 7
    for n in range(10, FEW):
        append(partition, some_records(1, n), NOW + 100_000 * n, f"later-{n}")
        write(partition)
        mark(partition)
    index(partition)
    assert pack(partition) == 1
    later = LogReader(files.beside(), "data").maybe_partition("main/g1/p0", view)
    assert later is not None
    assert {b"later-10", b"later-20"} <= set(later.publishers(0, FEW).values())


def test_a_view_of_a_segment_that_was_written_to_reads_on_when_it_is_packed() -> None:
    """It knows less of the file than one packed chunk has: names and places are those of the packed file."""
    files = SimulatedFiles()
    partition = lone(files, 3, holder=HELD, durability="process")
    calls = files.beside()
    before = of_a_start(calls, LogReader(calls, "data").partitions()[0])
    for number in range(len(calls.looks) + 1):
        files = SimulatedFiles()
        partition = lone(files, 3, holder=HELD, durability="process")
        other = files.beside()
        view = LogReader(other, "data").partitions()[0]

        def go_on(partition: Partition = partition) -> None:
            more(partition, 3, 600)
            assert pack(partition) == 1

        other.looks = At(number, go_on)
        assert of_a_start(other, view) == before, number


def test_a_check_that_comes_late_to_a_segment_finds_nothing_in_it() -> None:
    """It was written to when it was listed, and had been packed when the check came to it."""
    files = SimulatedFiles()
    partition = lone(files, 3, holder=HELD, durability="process")
    view = seen_by_another(files)
    more(partition, 3, 600)
    assert pack(partition) == 1
    assert list(PartitionCheck(files.beside(), view).run()) == []


@pytest.mark.parametrize(("durability", "first", "count"), [("process", 3, 600), ("disk", 10, 60)])
def test_a_view_never_ends_before_an_earlier_one(durability: str, first: int, count: int) -> None:
    """Even if a segment that was written to when it was listed is packed before it is opened."""
    number, is_over = 0, False
    while not is_over:
        files = SimulatedFiles()
        partition = lone(files, first, holder=HELD, durability=durability)
        other, went_on = files.beside(), list[int]()
        view = LogReader(other, "data").partitions()[0]

        def go_on(partition: Partition = partition, went_on: list[int] = went_on) -> None:
            more(partition, first, count)
            went_on.append(pack(partition))

        other.looks = At(number, go_on)
        later = LogReader(other, "data").maybe_partition("main/g1/p0", view)
        assert later is not None and later.end_lsn >= view.end_lsn > 0, number
        assert viewed(later) == (everything(partition)[0][: later.end_lsn], []), number
        number, is_over = number + 1, not went_on


def of_a_start(other: SimulatedFiles, view: PartitionView) -> tuple[object, ...]:
    names, end = view.names(), view.end_lsn
    topics = {number: name for number, name in names[0].items() if number < 3}
    starts = [view.find_offset(b"t/%d" % n, 0) for n in range(3)], view.find_time(NOW + 100_000)
    clients = {number: name for number, name in view.publishers(0, end).items() if number < 4}
    said = view.segment_names(0)
    return (
        topics,
        viewed(view),
        starts,
        clients,
        {n: name for n, name in said[0].items() if n < 3},
        {1, 2, 3} <= {*said[1]},
    )


class At(list[tuple[str, str]]):
    """The read-only calls of a process; before the one with a number, `act` is called."""

    def __init__(self, number: int, act: Callable[[], object]) -> None:
        super().__init__()
        self._number, self._act = number, act

    def append(self, look: tuple[str, str]) -> None:
        if len(self) == self._number:
            self._act()
        super().append(look)


def a_whole_look(other: SimulatedFiles) -> tuple[object, ...]:
    """All that another process may read of a partition."""
    view = LogReader(other, "data").partitions()[0]
    found, gaps = viewed(view)
    again = LogReader(other, "data").maybe_partition("main/g1/p0", view)
    assert again is not None and viewed(again)[0] == found
    clients = set(view.publishers(0, view.end_lsn).values())
    starts = view.find_time(found[20].ts), view.find_offset(found[20].topic, found[20].offset)
    return found, gaps, clients, starts, [finding for finding in verify(other, "data") if finding.severity != "note"]


def test_whoever_reads_while_a_segment_is_replaced_reads_the_same() -> None:
    """The packing happens before any one call of the reader, from the listing on."""
    files = SimulatedFiles()
    lone(files, FEW, holder=HELD)
    expected = a_whole_look(files.beside())
    found, gaps, clients, starts, faults = expected
    assert (len(found), gaps, len(clients), starts, faults) == (FEW, [], 7, (20, 20), [])  # type: ignore[arg-type]
    calls = files.beside()
    a_whole_look(calls)
    for number in range(len(calls.looks) + 1):
        files = SimulatedFiles()
        partition = lone(files, FEW, holder=HELD)
        other = files.beside()
        packed: list[int] = []
        other.looks = At(number, lambda packed=packed, partition=partition: packed.append(pack(partition)))  # type: ignore[misc]
        assert a_whole_look(other) == expected, number
        assert packed == [1] or number >= len(other.looks)


def test_a_damaged_segment_stays_as_it_is() -> None:
    files = SimulatedFiles()
    partition = lone(files, FEW)
    path = partition.segments.files[0].path
    files.damage(path, 4096 + 140, 0x10)
    before = files.content(path)
    assert pack(partition) == 0
    assert files.content(path) == before and names(files) == sorted(names(files))
    assert not [name for name in files.names(DIRECTORY) if name.endswith(PACKED)]


@pytest.mark.parametrize("segment", ["old", "new"])
@pytest.mark.parametrize("its_index", ["old", "new", "none"])
def test_a_file_from_before_the_packing_is_read_as_what_it_is(segment: str, its_index: str) -> None:
    """From a backup, beside the manifest of today: neither cut off where the packed file ended, nor called damaged."""
    files = SimulatedFiles()
    partition = lone(files, FEW)
    before, _ = everything(partition)
    path = partition.segments.files[0].path
    contents = {"old": files.content(path)}
    indexes = {"old": files.content(index_path(path)), "none": b""}
    assert pack(partition) == 1
    contents["new"], indexes["new"] = files.content(path), files.content(index_path(path))
    files = files.after_kill()
    for where, raw in ((path, contents[segment]), (index_path(path), indexes[its_index])):
        files.remove(where)
        handle = files.create(where)
        files.write(handle, 0, [raw])
        files.close(handle)
    store = opened(files, segment_bytes_max=SEGMENT_BYTES, seed=9)
    assert everything(store.partitions[0]) == (before, [])
    found = store.recovered[0]
    assert (found.gaps, found.short, found.longer, found.unreadable) == ([], [], [], [])
    assert files.content(path) == contents[segment]
    assert store.close() == [] and findings(files.beside()) == []


def test_any_call_may_fail_and_nothing_is_lost_or_left() -> None:
    """Each changing call of a packing once, with each error: the records are as before, and the next start is clean."""
    calls = SimulatedFiles()
    partition = lone(calls, FEW)
    first = len(calls.calls)
    assert pack(partition) == 1
    steps = len(calls.calls) - first
    assert steps >= 10
    raised = 0
    for fault in (errno.EIO, errno.ENOSPC):
        for number in range(steps):
            files = SimulatedFiles()
            partition = lone(files, FEW)
            before, _ = everything(partition)
            files.fail = {len(files.calls) + number: fault}
            try:
                pack(partition)
            except OSError:
                raised += 1
            files.fail = {}
            assert everything(partition) == (before, [])
            assert not [name for name in files.names(DIRECTORY) if name.endswith(PACKED)]
            more(partition, FEW, 30)
            store = opened(files.after_kill(), segment_bytes_max=SEGMENT_BYTES, seed=3)
            found, gaps = everything(store.partitions[0])
            assert found[:FEW] == before and len(found) == FEW + 30 and gaps == []
            recovered = store.recovered[0]
            assert recovered.gaps == recovered.short == recovered.known_gaps == []
    assert raised >= 2 * (steps - 2), "but for the last edit, which the next start need not have"


def test_a_kill_leaves_a_file_that_the_next_start_removes() -> None:
    files = SimulatedFiles()
    partition = lone(files, FEW)
    before, _ = everything(partition)
    packing = take_packing(partition)
    assert packing is not None
    while not [name for name in files.names(DIRECTORY) if name.endswith(PACKED)]:
        assert not packing.step()
    after = files.after_kill()
    store = opened(after, segment_bytes_max=SEGMENT_BYTES, seed=3)
    assert everything(store.partitions[0]) == (before, [])
    assert not [name for name in after.names(DIRECTORY) if name.endswith(PACKED)]
    packing.abandon()
    assert not [name for name in files.names(DIRECTORY) if name.endswith(PACKED)]


def test_removal_and_packing_do_not_meet() -> None:
    files = SimulatedFiles()
    partition = lone(files, retention_bytes_max=1)
    packing = take_packing(partition)
    assert packing is not None
    while not packing.step():
        pass
    removal = partition.take_retention(None)
    assert removal is not None and take_replacement(partition, packing) is None
    partition.removed(removal)
    replacement = take_replacement(partition, packing)
    assert replacement is not None and partition.take_retention(None) is None
    replaced(partition, replacement)
    removal = partition.take_retention(None)
    assert removal is not None
    removal.run()
    partition.removed(removal)
    assert take_replacement(partition, packing) is None, "its segment is gone"


def test_a_segment_that_retention_takes_meanwhile_is_let_go() -> None:
    files = SimulatedFiles()
    partition = lone(files, retention_bytes_max=1)
    packing = take_packing(partition)
    assert packing is not None
    removal = partition.take_retention(None)
    assert removal is not None
    removal.run()
    partition.removed(removal)
    while not packing.step():
        pass
    assert packing.packed is None
    assert not [name for name in files.names(DIRECTORY) if name.endswith(PACKED)]


def test_what_is_large_already_is_not_written_again() -> None:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES).partitions[0]
    for group in range(12):
        append(partition, some_records(800, 800 * group))
        write(partition)
    index(partition)
    calls = len(files.calls)
    assert len(partition.segments.files) > 2 and pack(partition) == 0
    assert len(files.calls) == calls


def test_the_manifest_tells_both_files_apart() -> None:
    files = SimulatedFiles()
    partition = lone(files, FEW)
    assert pack(partition) == 1
    edits = [e for e in decode_edits(files.content(f"{DIRECTORY}/MANIFEST")) if e["edit"] == "seal"]
    assert [edit["salt"] == partition.segments.files[0].salt for edit in edits] == [False, True]
    assert edits[0]["stop"] > 4 * edits[1]["stop"]


def sparse(files: SimulatedFiles, *, count: int = 80) -> Partition:
    """A log of a message every 51 minutes, which no chunk may have together."""
    store = opened(files, segment_bytes_max=SEGMENT_BYTES, segment_seconds_max=1 << 30)
    partition = store.partitions[0]
    for n in range(count):
        append(partition, some_records(1, n), NOW + 3_060_000_000 * n)
        write(partition)
        mark(partition)
    index(partition)
    return partition


def test_a_packed_segment_is_not_packed_again_at_each_start() -> None:
    files = SimulatedFiles()
    partition = sparse(files)
    before, _ = everything(partition)
    assert pack(partition) == len(partition.segments.files) - 1 >= 2
    files = files.after_kill()
    again = opened(files, segment_bytes_max=SEGMENT_BYTES, seed=5, now=NOW + (1 << 50)).partitions[0]
    append(again, some_records(1, 0), NOW + (1 << 50))
    write(again)
    index(again)
    calls = len(files.calls)
    assert pack(again) == 1, "the last one of the run before"
    written = {path for name, path in files.calls[calls:] if name == "create" and path.endswith(PACKED)}
    assert len(written) == 1, "others are not even tried"
    assert everything(again)[0][: len(before)] == before


def test_a_packed_file_that_frees_too_little_is_not_used() -> None:
    """Small records of many groups a page apart by chance: what packing frees is known when it is done."""
    files = SimulatedFiles()
    partition = opened(files, durability="process", segment_bytes_max=60_000, segment_seconds_max=1 << 30).partitions[0]
    for n in range(600):
        append(partition, [(b"t", bytes(50))], NOW + 3_060_000_000 * n)
        write(partition)
    index(partition)
    assert len(partition.segments.files) > 2
    sizes = [segment.disk_bytes for segment in partition.segments.files]
    assert pack(partition) == 0 and [segment.disk_bytes for segment in partition.segments.files] == sizes
    assert not [name for name in files.names(DIRECTORY) if name.endswith(PACKED)]


def test_an_index_that_was_removed_for_a_packing_that_failed_is_made_again() -> None:
    files = SimulatedFiles()
    partition = lone(files, FEW)
    path = partition.segments.files[0].path
    packing = take_packing(partition)
    assert packing is not None
    while not packing.step():
        pass
    replacement = take_replacement(partition, packing)
    assert replacement is not None
    files.fail = {len(files.calls) + 1: errno.EIO}  # the rename
    with pytest.raises(OSError, match="rror"):
        replacement.run()
    files.fail = {}
    replaced(partition, replacement)
    assert not replacement.done and not files.exists(index_path(path))
    index(partition)
    assert files.exists(index_path(path))
