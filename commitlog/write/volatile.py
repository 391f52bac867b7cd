"""A partition without files: its last records, in memory, while the process lives.

A record is committed once appended; past `bytes_max` the oldest are dropped silently. Lsns start at the time of the
start in milliseconds, so that a later run reuses none, unless this one appends more than a record a millisecond."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from commitlog.chunk import Buffer, Chunk, Gap
from commitlog.errors import LogError
from commitlog.kernels import rows as kernel
from commitlog.streams import StreamSpec

CHUNK_BYTES = 1024


class VolatilePartition:
    """A `commitlog.log.partition_types.PartitionWriter` in memory."""

    is_mirrored = False
    is_volatile = True
    offline = None
    pending_bytes = 0

    def __init__(self, spec: StreamSpec, index: int, *, now_us: int, bytes_max: int = 1 << 18) -> None:
        """index: among all partitions of the store; bytes_max: of what is kept"""
        self.spec, self.index, self.number, self.generation = spec, index, 0, 1
        self.stream = spec.name
        self.topic_names: list[bytes] = []
        self.topic_ids: dict[bytes, int] = {}
        self.publisher_names: dict[int, bytes] = {}
        self.next_offsets = array("Q")
        self.next_lsn = self.first_lsn = now_us // 1000
        self._bytes_max = bytes_max
        self._bytes = 0
        self._chunks: list[Chunk] = []
        self._lsns: list[int] = []

    @property
    def ack_source(self) -> VolatilePartition:
        return self

    @property
    def starts(self) -> list[tuple[int, int]]:
        """Of a log on disk: here no lsn comes again."""
        return []

    @property
    def committed_lsn(self) -> int:
        return self.next_lsn

    def add_topic(self, name: bytes) -> int:
        """Add a topic; returns its number."""
        topic_id = self.topic_ids[name] = len(self.topic_names)
        self.topic_names.append(name)
        self.next_offsets.append(0)
        return topic_id

    def known_publisher(self, client_id: str) -> int:
        """Clients publish nothing here."""
        return 0

    add_publisher = known_publisher

    def release_publisher(self, number: int) -> None:
        pass

    def append(
        self, rows: bytearray | memoryview, frames: Buffer, count: int, flags: int, now_us: int, tags: bytes = b"",
        sources: bytes = b"",
    ) -> Chunk:  # fmt: skip
        """Append records, as `Partition.append`, and drop the oldest beyond `bytes_max`."""
        if kernel.number_rows(rows, count, self.next_offsets) >= 0:
            raise LogError("a row has a topic id that was never added")
        chunk = Chunk(self.next_lsn, count, now_us, flags, rows, frames, tags, sources)
        self.next_lsn = chunk.next_lsn
        self._chunks.append(chunk)
        self._lsns.append(chunk.base_lsn)
        self._bytes += size_of(chunk)
        while self._bytes > self._bytes_max and len(self._chunks) > 1:
            self._bytes -= size_of(self._chunks.pop(0))
            del self._lsns[0]
        self.first_lsn = self._lsns[0]
        return chunk

    def read(self, lsn: int, bytes_max: int = 1) -> list[Chunk | Gap]:
        """Chunks from the one that holds `lsn` on; [] at the end; dropped records are a gap."""
        if lsn >= self.next_lsn:
            return []
        if lsn < self.first_lsn:
            return [Gap(lsn, self.first_lsn, "not kept")]
        at = bisect_right(self._lsns, lsn) - 1
        found: list[Chunk | Gap] = []
        size = 0
        while at < len(self._chunks) and (not found or size < bytes_max):
            found.append(self._chunks[at])
            size += len(self._chunks[at].frames)
            at += 1
        return found

    def cold_read(self, lsn: int, bytes_max: int = 1 << 20) -> MemoryReadTask:
        """The result of `read`, as a job for another thread."""
        return MemoryReadTask(self.read(lsn, bytes_max))

    def uncommitted_tags(self) -> Iterator[tuple[int, int]]:
        return iter(())


class MemoryReadTask:
    """A read that is done already."""

    def __init__(self, chunks: list[Chunk | Gap]) -> None:
        self._chunks = chunks

    def run(self) -> list[Chunk | Gap]:
        return self._chunks


def size_of(chunk: Chunk) -> int:
    return len(chunk.rows) + len(chunk.frames) + CHUNK_BYTES
