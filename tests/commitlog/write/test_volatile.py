"""A partition that is in no file: read as any other, bounded, and its lsns are never given out twice."""

import struct

from commitlog import Chunk, Gap, StreamSpec
from commitlog.write.volatile import VolatilePartition

NOW_US = 1_700_000_000_000_000
BYTES_MAX = 8192


def opened(now_us: int = NOW_US) -> VolatilePartition:
    partition = VolatilePartition(StreamSpec("_sys", (), 1, "memory"), 3, now_us=now_us, bytes_max=BYTES_MAX)
    partition.add_topic(b"t")
    return partition


def append(partition: VolatilePartition, count: int = 1) -> Chunk:
    frame = b"\x30\x04\x00\x01tx"
    rows = b"".join(struct.pack("<IIQIIIHH", 0, n * len(frame), 0, 0, 5, 0, 0, 0) for n in range(count))
    return partition.append(bytearray(rows), frame * count, count, 0, NOW_US)


def test_records_are_read_from_where_one_stands() -> None:
    partition = opened()
    first, second = append(partition, 2), append(partition, 3)
    assert (partition.first_lsn, partition.next_lsn) == (first.base_lsn, first.base_lsn + 5)
    assert partition.committed_lsn == partition.next_lsn
    assert partition.read(first.base_lsn + 1) == [first]
    assert partition.read(first.base_lsn, 1 << 20) == [first, second]
    assert partition.cold_read(second.base_lsn + 2).run() == [second]
    assert partition.read(partition.next_lsn) == []


def test_the_oldest_go_and_leave_a_gap() -> None:
    partition = opened()
    chunks = [append(partition) for _ in range(20)]
    kept = [chunk for chunk in chunks if chunk.base_lsn >= partition.first_lsn]
    assert 1 < len(kept) < 10 and kept[-1] is chunks[-1]
    start = chunks[0].base_lsn
    assert partition.read(start) == [Gap(start, partition.first_lsn, "not kept")]
    assert partition.read(partition.first_lsn, 1 << 20) == kept


def test_one_that_is_larger_than_the_bound_is_kept_all_the_same() -> None:
    partition = opened()
    append(partition)
    large = append(partition, 400)
    assert partition.read(large.base_lsn) == [large]


def test_a_later_run_begins_behind_an_earlier_one() -> None:
    partition = opened()
    for _ in range(600):  # ten minutes of a record a second
        append(partition)
    assert opened(NOW_US + 600_000_000).next_lsn > partition.next_lsn


def test_offsets_are_dense_for_each_topic() -> None:
    partition = opened()
    append(partition, 2)
    chunk = append(partition)
    assert struct.unpack_from("<IIQ", chunk.rows)[2] == 2
