"""Partitions with zeros ahead of their data, for tests."""

from commitlog.log.partition import Partition
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import append, opened, preallocate, segments, some_records, write


def group(partition: Partition, size: int = 3) -> None:
    """Append so many records and write them."""
    append(partition, some_records(size, partition.next_lsn))
    assert write(partition)


def with_room(files: SimulatedFiles, groups: int = 2) -> Partition:
    """A partition with so many groups, and zeros behind them."""
    partition = opened(files).partitions[0]
    for _ in range(groups):
        group(partition)
    preallocate(partition)
    return partition


def size_of(files: SimulatedFiles) -> int:
    """Of the newest segment."""
    return len(files.content(segments(files)[-1]))
