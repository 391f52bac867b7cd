"""A partition that is kept in no file: its last records, in memory, for as long as the process lives.

To whoever reads it, it is a `Partition`. Everything is committed once it is appended; past `bytes_max` the oldest
records go, without a word. Its lsns begin at the time of the start in milliseconds, so that a later run gives none of
them out again, unless it appended more than a record a millisecond. Knows no thread and no clock."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from commitlog.chunk import Chunk, Gap
from commitlog.errors import LogError
from commitlog.kernels import rows as kernel
from commitlog.streams import StreamSpec

CHUNK_BYTES = 1024


class VolatilePartition:
    """In the place of a `Partition`, for what its readers ask of one."""

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
        self.publisher_names = [b""]
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
    def committed_lsn(self) -> int:
        return self.next_lsn

    def add_topic(self, name: bytes) -> int:
        """Number a topic that is new here."""
        topic_id = self.topic_ids[name] = len(self.topic_names)
        self.topic_names.append(name)
        self.next_offsets.append(0)
        return topic_id

    def known_publisher(self, client_id: str) -> int:
        """Clients publish nothing here."""
        return 0

    add_publisher = known_publisher

    def append(
        self, rows: bytearray, frames: bytes, count: int, flags: int, now_us: int, tags: bytes = b"",
        sources: bytes = b"",
    ) -> Chunk:  # fmt: skip
        """Add records, as `Partition.append`, and let the oldest go if they are too many."""
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
        """Chunks from the one that holds `lsn` on; [] at the end; what is gone is a gap."""
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

    def cold_read(self, lsn: int, bytes_max: int = 1 << 20) -> Kept:
        """What `read` gives, for who reads on another thread."""
        return Kept(self.read(lsn, bytes_max))

    def uncommitted_tags(self) -> Iterator[tuple[int, int]]:
        return iter(())


class Kept:
    """A read that has been made already."""

    def __init__(self, chunks: list[Chunk | Gap]) -> None:
        self._chunks = chunks

    def run(self) -> list[Chunk | Gap]:
        return self._chunks


def size_of(chunk: Chunk) -> int:
    return len(chunk.rows) + len(chunk.frames) + CHUNK_BYTES
