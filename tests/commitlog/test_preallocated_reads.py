"""What readers, backups and a close make of zeros ahead of a segment's data: decision 25."""

from pathlib import Path

import pytest

from commitlog.disk.files import RealFiles, whole_file
from commitlog.disk.preallocation import PAGE, PIECE_BYTES_MIN
from commitlog.format.committed_scan import CommittedScan
from commitlog.read.backup import Backup, restore
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.preallocated import group, size_of, with_room
from tests.commitlog.records import (
    everything,
    index,
    mark,
    opened,
    preallocate,
    records_of,
    segments,
    some_records,
    view,
    viewed,
)


def test_another_process_reads_up_to_the_zeros() -> None:
    files = SimulatedFiles()
    partition = with_room(files)
    mark(partition)
    found, gaps = viewed(view(files))
    assert records_of(found) == some_records(6) and gaps == []
    assert [f for f in verify(files, "data") if f.severity != "note"] == []


class Overtaken(SimulatedFiles):
    """A reader that is stopped in the middle of a read: `meanwhile` happens behind the first page that it has."""

    meanwhile = None
    at = 0

    def read(self, handle: int, position: int, size: int) -> bytes:
        if self.meanwhile is None or not position <= self.at < position + size:
            return super().read(handle, position, size)
        first = super().read(handle, position, self.at + PAGE - position)
        act, self.meanwhile = self.meanwhile, None
        act()
        return first + super().read(handle, position + len(first), size - len(first))


@pytest.mark.parametrize("reads", [1, 2])
def test_a_scan_that_is_overtaken_by_the_writer_misses_nothing(reads: int) -> None:
    """Zeros are read, then a group comes there and one behind it, then that one is read."""
    files = SimulatedFiles()
    partition = with_room(files)
    path = segments(files)[0]
    reader = Overtaken(files.root)
    handle = reader.open(path)
    scan = CommittedScan(partition.segments.active.salt, 0)
    scan.advance(reader, handle, size_of(files))
    reader.at = partition.segments.active.bytes

    def two_groups() -> None:
        group(partition)
        group(partition)
        mark(partition)

    def later() -> None:
        reader.meanwhile = two_groups

    reader.meanwhile = two_groups if reads == 1 else later
    scan.advance(reader, handle, size_of(files))
    scan.advance(reader, handle, size_of(files))
    assert scan.proved == 12
    assert [place.base_lsn for place in scan.places()] == [0, 3, 6, 9]


def test_a_scan_goes_on_behind_a_page_that_was_zeroed() -> None:
    files = SimulatedFiles()
    partition = with_room(files, 1)
    places = []
    for _ in range(3):
        group(partition)
        places.append(partition.segments.active.places[-1])
    path = segments(files)[0]
    for n in range(places[1].total_len):
        byte = files.content(path)[places[1].position + n]
        if byte:
            files.damage(path, places[1].position + n, byte)
    scan = CommittedScan(partition.segments.active.salt, 0)
    scan.advance(files, files.open(path), size_of(files))
    assert [place.base_lsn for place in scan.places()] == [0, 3]
    assert scan.proved == 9, "the last mark"


def test_a_backup_of_the_active_segment_has_its_data_only(tmp_path: Path) -> None:
    files = RealFiles()
    data, copy, again = str(tmp_path / "data"), str(tmp_path / "copy"), str(tmp_path / "again")
    store = opened(files, root=data, holder="pid 1\n")
    partition = store.partitions[0]
    for _ in range(2):
        group(partition)
    preallocate(partition)
    path = partition.segments.active.path
    assert files.size(path) > partition.segments.active.bytes
    Backup(data, copy).run("now")
    copied = path.replace(data, copy)
    assert files.size(copied) == partition.segments.active.bytes
    assert whole_file(files, path).startswith(whole_file(files, copied))
    restore(copy, again)
    found, _ = everything(opened(files, root=again).partitions[0])
    assert records_of(found) == some_records(6)


@pytest.mark.parametrize("end", ["killed", "sealed"])
def test_a_backup_into_an_earlier_one_has_what_came_behind_a_mark(tmp_path: Path, end: str) -> None:
    """A mark shares its page with what comes next: the file may have the size that its copy had before."""
    files = RealFiles()
    data, copy, again = str(tmp_path / "data"), str(tmp_path / "copy"), str(tmp_path / "again")
    store = opened(files, root=data, holder="pid 1\n")
    partition = store.partitions[0]
    group(partition)
    preallocate(partition)
    mark(partition)
    path = partition.segments.active.path
    Backup(data, copy).run("now")
    if end == "killed":
        group(partition)
        files.close(store._lock)
    else:
        assert store.close() == []
    kept = opened(files, root=data, seed=1)
    index(kept.partitions[0])
    assert files.size(path) == files.size(path.replace(data, copy)), "otherwise this tests nothing"
    Backup(data, copy).run("later")
    restore(copy, again)
    found, gaps = everything(opened(files, root=again, seed=2).partitions[0])
    assert (found, gaps) == everything(kept.partitions[0])
    assert [finding for finding in verify(files, again) if finding.severity != "note"] == []


def test_real_files_are_preallocated_and_cut_off(tmp_path: Path) -> None:
    files = RealFiles()
    store = opened(files, root=str(tmp_path / "data"))
    partition = store.partitions[0]
    group(partition)
    preallocate(partition)
    path = partition.segments.active.path
    assert files.size(path) == PIECE_BYTES_MIN + partition.segments.active.bytes
    assert store.close() == []
    assert files.size(path) == partition.segments.files[0].logical_end
