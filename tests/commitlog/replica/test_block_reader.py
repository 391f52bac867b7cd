"""A leader sends whole chunks, of finished segments and of the active one."""

import pytest

from commitlog import Damaged
from commitlog.replica.block_reader import read_block, read_opening
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import append, opened, preallocate, segments, some_records, write


def filled(groups: int) -> tuple[SimulatedFiles, str, int]:
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    for group in range(groups):
        append(partition, some_records(10, 10 * group))
        write(partition)
    preallocate(partition, always=True)
    return files, segments(files)[0], partition.writer.position


def test_blocks_are_whole_chunks_and_together_the_segment() -> None:
    files, path, stop = filled(5)
    assert files.size(path) > stop, "zeros ahead are not sent"
    for bytes_max in (1, 4096, 5000, 3 * 4096, 1 << 20):
        data, position = read_opening(files, path), 4096
        sizes = []
        while position < stop:
            block, following = read_block(files, path, position, stop, bytes_max)
            assert block[:4] == b"RQC1" and following == position + len(block)
            data, position = data + block, following
            sizes.append(len(block))
        assert data == files.content(path)[:stop]
        assert all(size <= max(bytes_max, 4096) for size in sizes)
    assert read_block(files, path, stop, stop, 100) == (b"", stop)


def test_a_place_where_no_chunk_begins_is_told() -> None:
    files, path, stop = filled(5)
    for position, bytes_max in ((4096 + 64, 4096), (4096 + 64, 1), (4096 + 64, 8192)):
        with pytest.raises(Damaged):
            read_block(files, path, position, stop, bytes_max)
    files.damage(path, 4096 + 4096 + 9)
    assert read_block(files, path, 4096, stop, 1)[1] == 8192
    with pytest.raises(Damaged, match="8192"):
        read_block(files, path, 4096, stop, 4 * 4096)


def test_a_segment_that_was_removed_is_told() -> None:
    files, path, stop = filled(1)
    files.remove(path)
    with pytest.raises(FileNotFoundError):
        read_block(files, path, 4096, stop, 1)
