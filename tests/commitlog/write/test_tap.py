"""What a tap is told of a partition's writer makes the same files elsewhere."""

import errno
from typing import Any

import pytest

from commitlog import NotInMemory, Partition
from commitlog.format.segment import SEGMENT_HEADER_BYTES
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import append, index, mark, opened, segments, some_records, write


class Copies:
    """A tap that makes copies. files: name -> bytes; told: what, in order"""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.told: list[str] = []

    def opened(self, name: str, base_lsn: int, header: bytes) -> None:
        assert len(header) == SEGMENT_HEADER_BYTES and name.startswith(f"{base_lsn:020d}-")
        self.files[name] = bytearray(header)
        self.told.append("opened")

    def written(self, name: str, position: int, data: Any) -> None:
        assert len(self.files[name]) == position
        self.files[name] += data
        self.told.append("written")

    def trimmed(self, first_lsn: int) -> None:
        self.told.append(f"trimmed {first_lsn}")

    def irregular(self) -> None:
        self.told.append("irregular")


def tapped(files: SimulatedFiles, **options: Any) -> tuple[Partition, Copies]:
    partition = opened(files, **options).partitions[0]
    assert isinstance(partition, Partition)
    copies = Copies()
    partition.writer.tap = copies
    return partition, copies


def flush(partition: Partition) -> None:
    """A small group, as the loop and a thread that runs no Python write it."""
    group = partition.take_group()
    assert group is not None and group.is_small()
    flush = group.begin()
    assert flush is not None
    flush.run()
    group.end()
    assert partition.complete(group) is None


@pytest.mark.parametrize("direct_bytes_min", [1 << 30, 0])
def test_copies_made_by_a_tap_are_the_files(direct_bytes_min: int) -> None:
    files = SimulatedFiles()
    partition, copies = tapped(files, segment_bytes_max=1 << 16, direct_bytes_min=direct_bytes_min)
    for number in range(60):
        append(partition, [(b"t", bytes(700))] * (1 + number % 5))
        if number % 3 == 1 and not partition.writer.must_roll(10_000, partition.last_ts):
            flush(partition)
        else:
            assert write(partition)
        if number % 7 == 0:
            mark(partition)
    partition.finish()
    written = {path.rpartition("/")[2]: bytes(files.content(path)) for path in segments(files)}
    assert len(written) > 3 and copies.told.count("opened") == len(written)
    assert {name: bytes(copy) for name, copy in copies.files.items()} == written


def test_a_tap_is_told_when_what_it_was_told_counts_no_more() -> None:
    files = SimulatedFiles()
    partition, copies = tapped(files)
    append(partition, some_records(2))
    assert write(partition)
    before = len(copies.told)
    append(partition, some_records(2, 2))
    files.fail = {len(files.calls) + 1: errno.EIO}  # the sync behind the write
    write(partition)
    assert copies.told[before:] == ["written", "irregular", "opened", "written"]
    assert partition.written_lsn == 4


def test_a_segment_that_could_not_be_begun_was_never_told() -> None:
    files = SimulatedFiles()
    partition, copies = tapped(files)
    files.broken, files.broken_under = errno.ENOSPC, "data/main"
    append(partition, some_records(2))
    write(partition)
    assert partition.offline is not None and copies.told == []


def test_a_tap_is_told_of_retention() -> None:
    files = SimulatedFiles()
    partition, copies = tapped(files, segment_bytes_max=1 << 16, retention_bytes_max=1 << 16)
    for _ in range(40):
        append(partition, [(b"t", bytes(5_000))] * 2)
        write(partition)
    index(partition)
    removal = partition.take_retention(None)
    assert removal is not None
    removal.run()
    partition.removed(removal)
    assert copies.told[-1] == f"trimmed {partition.first_lsn}" and partition.first_lsn > 0


def test_segments_carry_at_least_the_epoch_of_the_term() -> None:
    files = SimulatedFiles()
    for epoch, expected in ((5, 5), (9, 9), (3, 10)):
        store = opened(files, epoch=epoch)
        partition = store.own[0]
        append(partition, some_records(1))
        write(partition)
        assert partition.writer._epoch == expected
        store.close()


# Streams of quorum


def test_records_are_committed_once_a_majority_has_them() -> None:
    partition = opened(SimulatedFiles()).own[0]
    partition.replicated_lsn = 0
    append(partition, some_records(3))
    write(partition)
    assert (partition.durable_lsn, partition.committed_lsn) == (3, 0)
    mark(partition)
    assert partition.marked_lsn == 0, "a mark says what is committed"
    partition.note_replicated(2)
    partition.note_replicated(1)
    assert partition.committed_lsn == 2, "it never goes back"


def test_records_that_are_not_committed_stay_in_memory_and_are_not_read_from_disk() -> None:
    """Whoever reads from disk would see what a majority may not have."""
    partition = opened(SimulatedFiles()).own[0]
    partition.replicated_lsn = 0
    for first in range(0, 300, 3):
        append(partition, some_records(3, first))
        write(partition)
    assert partition.read(0)[0].base_lsn == 0
    partition.note_replicated(150)
    assert [chunk.next_lsn for chunk in partition.cold_read(147).run()] == [150]
    assert partition.cold_read(150).run() == []
    partition.note_replicated(300)
    append(partition, some_records(3, 300))
    write(partition)
    with pytest.raises(NotInMemory):
        partition.read(0)
