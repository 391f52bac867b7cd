"""Records as the broker makes them, for tests of the log, and ways to look at what a log says."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from commitlog import Chunk, Gap, NotInMemory, OpenOptions, Partition, Store, StoreLayout, StreamSpec, open_store
from commitlog.chunk import FLAG_QOS
from commitlog.disk.files import Files
from commitlog.log.packing import replaced, take_packing, take_replacement
from commitlog.read.cold_reads import publishers_in
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from commitlog.testing.simulated_files import SimulatedFiles

NOW = 1_700_000_000_000_000
DIRECTORY = "data/main/g1/p0"
DEAD = "pid 4194304\n"  # above what Linux gives out: nobody's
Record = tuple[bytes, bytes]  # topic, payload


class Seen(NamedTuple):
    """A record as a reader sees it. tag: the packet id of an inbound QoS 2 message, 0: none."""

    lsn: int
    topic: bytes
    offset: int
    payload: bytes
    ts: int
    client_id: bytes
    tag: int


def opened(
    files: Files, *, durability: str = "disk", segment_bytes_max: int = 1 << 20, hot: int = 0, now: int = NOW,
    holder: str = DEAD, partitions: int = 1, retention_bytes_max: int | None = None,
    retention_seconds_max: int | None = None, segment_seconds_max: int = 3600, seed: int = 0, root: str = "data",
    direct_bytes_min: int = 1 << 30, epoch: int = 0,
) -> Store:  # fmt: skip
    """hot: 0 keeps nothing in memory that is on disk, so everything is read back."""
    spec = StreamSpec(
        "main", ("#",), partitions, "process" if durability == "process" else "disk", segment_bytes_max,
        segment_seconds_max, retention_bytes_max, retention_seconds_max,
    )  # fmt: skip
    return open_store(
        files,
        root,
        StoreLayout([spec], lambda f, t: f == "#"),
        OpenOptions(now, hot_bytes_max=hot, random=numbers(seed), direct_bytes_min=direct_bytes_min, epoch=epoch),
        holder=holder,
    )


def numbers(seed: int) -> Callable[[int], bytes]:
    """Bytes that are always the same."""
    state = seed

    def some(size: int) -> bytes:
        nonlocal state
        state += 1
        return (state * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 8 * size)).to_bytes(size, "little")

    return some


def frame(topic: bytes, payload: bytes) -> bytes:
    size = 4 + len(topic) + len(payload)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return b"\x32" + length + len(topic).to_bytes(2, "big") + topic + b"\0\1" + payload


def append(
    partition: Partition, records: Iterable[Record], ts: int = NOW, client_id: str = "",
    tags: dict[int, int] | None = None, flags: int = FLAG_QOS, row_flags: int = 1,
) -> Chunk:  # fmt: skip
    """tags: row -> packet id; row_flags: of each row, QoS 1"""
    rows, frames = bytearray(), b""
    publisher = partition.add_publisher(client_id) if client_id else 0
    for topic, payload in records:
        number = partition.topic_ids.get(topic)
        if number is None:
            number = partition.add_topic(topic)
        packet = frame(topic, payload)
        row = bytearray(32)
        row[0:4] = number.to_bytes(4, "little")
        row[4:8] = len(frames).to_bytes(4, "little")
        row[20:24] = (len(packet) - len(payload)).to_bytes(4, "little")
        row[24:28] = publisher.to_bytes(4, "little")
        row[28] = row_flags
        rows += row
        frames += packet
    packed = b"".join(n.to_bytes(4, "little") for item in (tags or {}).items() for n in item)
    return partition.append(rows, frames, len(rows) // 32, flags, ts, packed)


def write(partition: Partition, *, small: bool = True) -> bool:
    """One group to the disk, in the ways of a shard; False when it could not be written.

    small: a small one in the way of small ones"""
    group = partition.take_group()
    if group is not None:
        flush = group.begin() if small and group.is_small() else None
        try:
            if flush is None:
                group.run()
            else:
                flush.run()
                group.end()
        except OSError as fault:
            group.failed(fault)
            group.run()
        partition.complete(group)
    return partition.offline is None


def pack(partition: Partition, below: int = 1 << 62) -> int:
    """Pack what is finished and indexed, and ends at or below an lsn, as a shard does; returns how many segments."""
    packed = 0
    while (packing := take_packing(partition, below)) is not None:
        while not packing.step():
            pass
        replacement = take_replacement(partition, packing)
        if replacement is not None:
            try:
                replacement.run()
            finally:
                replaced(partition, replacement)
            packed += replacement.done
    return packed


def mark(partition: Partition) -> None:
    group = partition.take_mark(NOW)
    if group is not None:
        group.run()
        partition.complete(group)


def preallocate(partition: Partition, *, always: bool = False) -> bool:
    """Zeros ahead of the data, if they are due; whether the disk took it. always: due or not"""
    if always:
        partition.wants_room = 1
    group = partition.take_preallocation()
    if group is not None:
        group.run()
        return partition.complete(group) is None
    return True


def index(partition: Partition) -> None:
    while (job := partition.take_seal_job()) is not None:
        job.run()


def client_ids(partition: Partition, chunk: Chunk) -> dict[int, bytes]:
    """By number, of a chunk's publishers: those that came with it, or the partition's."""
    names = partition.publisher_names if chunk.publishers is None else chunk.publishers
    return {number: names.get(number, b"") for number in publishers_in(chunk.rows)}


def everything(partition: Partition) -> tuple[list[Seen], list[Gap]]:
    """All that is committed, read through memory and disk; and the gaps."""
    found: list[Seen] = []
    gaps = []
    lsn = partition.first_lsn
    while lsn < partition.committed_lsn:
        try:
            pieces = partition.read(lsn)
        except NotInMemory:
            pieces = partition.cold_read(lsn, 1).run()
        assert pieces, "a read brings something"
        for piece in pieces:
            if isinstance(piece, Gap):
                gaps.append(piece)
            else:
                names = dict(enumerate(partition.topic_names)), client_ids(partition, piece)
                found += [seen for seen in rows_of(piece, names) if seen.lsn >= lsn]
            lsn = max(lsn, piece.next_lsn)
    return found, gaps


def rows_of(chunk: Chunk, names: tuple[dict[int, bytes], dict[int, bytes]]) -> list[Seen]:
    words = memoryview(chunk.rows).cast("I")
    tags = memoryview(chunk.tags).cast("I")
    tag_of = {tags[at]: tags[at + 1] for at in range(0, len(tags), 2)}
    found = []
    for row in range(chunk.count):
        at = row * 8
        end = words[at + 9] if row + 1 < chunk.count else len(chunk.frames)
        payload = bytes(memoryview(chunk.frames)[words[at + 1] + words[at + 5] : end])
        offset = words[at + 2] | words[at + 3] << 32
        topic, client_id = names[0][words[at]], names[1].get(words[at + 6], b"")
        found.append(
            Seen(
                chunk.base_lsn + row,
                topic,
                offset,
                payload,
                chunk.base_ts + words[at + 4],
                client_id,
                tag_of.get(row, 0),
            )
        )
    return found


def view(files: Files) -> PartitionView:
    """The first partition, as another process sees it."""
    return LogReader(files, "data").partitions()[0]


def viewed(partition: PartitionView, start: int = 0, end: int = 1 << 62) -> tuple[list[Seen], list[Gap]]:
    found: list[Seen] = []
    gaps = []
    for piece in partition.chunks(start, end):
        if isinstance(piece, Gap):
            gaps.append(piece)
        else:
            found += rows_of(piece, partition.names())
    return found, gaps


def records_of(found: list[Seen]) -> list[Record]:
    return [(seen.topic, seen.payload) for seen in found]


def segments(files: SimulatedFiles) -> list[str]:
    """The paths of the segment files."""
    return [f"{DIRECTORY}/{name}" for name in files.names(DIRECTORY) if name.endswith(".seg")]


def is_untouched(before: bytes, after: bytes) -> bool:
    """Whether a start left a data file as it was, but for zeros at its end that it gave back."""
    return before.startswith(after) and not any(before[len(after) :])


def some_records(count: int, first: int = 0) -> list[Record]:
    return [(b"t/%d" % (n % 3), b"payload %d" % n) for n in range(first, first + count)]


def filled(groups: int = 3, *, files: SimulatedFiles | None = None, durability: str = "disk") -> SimulatedFiles:
    """A log of so many groups of ten records in one segment, whose process was killed."""
    files = files or SimulatedFiles()
    partition = opened(files, durability=durability).partitions[0]
    for group in range(groups):
        append(partition, some_records(10, 10 * group))
        write(partition)
    return files.after_kill()


def same_publishers(one: Partition, other: Partition) -> bool:
    """Whether both have the same client ids by the same numbers, and go on with the same one."""
    ours, theirs = one.publisher_names, other.publisher_names
    end = ours.next_number
    return end == theirs.next_number and ours.copied(end) == theirs.copied(end)
