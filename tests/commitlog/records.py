"""Records as the broker makes them, for tests of the log."""

from commitlog import Chunk, Gap, NotInMemory, Partition, Store, StreamSpec, open_store
from commitlog.chunk import FLAG_QOS
from commitlog.files import Files

NOW = 1_700_000_000_000_000
Record = tuple[bytes, bytes]  # topic, payload


def opened(
    files: Files, *, durability: str = "disk", segment_bytes_max: int = 1 << 20, hot: int = 0
) -> Store:
    spec = StreamSpec("main", ("#",), durability=durability, segment_bytes_max=segment_bytes_max)  # type: ignore[arg-type]
    salts = iter(range(1, 1 << 30))
    return open_store(
        files, "data", [spec], matches=lambda f, t: f == "#", now_us=NOW, hot_bytes_max=hot,
        random=lambda n: (next(salts) * 0x9E3779B97F4A7C15 % (1 << 8 * n)).to_bytes(n, "little"),
        direct_bytes_min=1 << 30,
    )  # fmt: skip


def append(partition: Partition, records: list[Record], ts: int = NOW) -> None:
    rows, frames = bytearray(), b""
    for topic, payload in records:
        number = partition.topic_ids.get(topic)
        if number is None:
            number = partition.add_topic(topic)
        frame = bytes([0x32, 4 + len(topic) + len(payload), 0, len(topic)]) + topic + b"\0\1" + payload
        row = bytearray(32)
        row[0:4] = number.to_bytes(4, "little")
        row[4:8] = len(frames).to_bytes(4, "little")
        row[20:24] = (6 + len(topic)).to_bytes(4, "little")
        row[28] = 1
        rows += row
        frames += frame
    partition.append(rows, frames, len(records), FLAG_QOS, ts)


def write(partition: Partition) -> bool:
    """One group to the disk; False when it could not be written."""
    group = partition.take_group()
    if group is not None:
        group.run()
        partition.complete(group)
    return partition.offline is None


def everything(partition: Partition) -> tuple[list[tuple[int, bytes, int, bytes]], list[Gap]]:
    """(lsn, topic, topic offset, payload) of all that is committed, read through memory and disk; and the gaps."""
    found, gaps = [], []
    lsn = partition.first_lsn
    while lsn < partition.committed_lsn:
        try:
            pieces = partition.read(lsn)
        except NotInMemory:
            pieces = partition.cold_read(lsn).run()
        assert pieces, "a read brings something"
        for piece in pieces:
            if isinstance(piece, Gap):
                gaps.append(piece)
            else:
                found += rows_of(partition, piece, lsn)
            lsn = max(lsn, piece.next_lsn)
    return found, gaps


def rows_of(partition: Partition, chunk: Chunk, first: int) -> list[tuple[int, bytes, int, bytes]]:
    words = memoryview(chunk.rows).cast("I")
    found = []
    for row in range(max(0, first - chunk.base_lsn), chunk.count):
        start = words[row * 8 + 1]
        end = words[row * 8 + 9] if row + 1 < chunk.count else len(chunk.frames)
        offset = words[row * 8 + 2] | words[row * 8 + 3] << 32
        payload = bytes(memoryview(chunk.frames)[start + words[row * 8 + 5] : end])
        found.append((chunk.base_lsn + row, partition.topic_names[words[row * 8]], offset, payload))
    return found
