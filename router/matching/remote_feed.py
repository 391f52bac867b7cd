"""The router's view of a partition that another shard owns: what the owner sends, in lsn order.

The owner sends only records that this shard subscribes to; the others are filtered ranges. Recent chunks are cached for
readers that are a little behind; readers further behind read whole chunks through the owner."""
# compiled: hot

from __future__ import annotations

from bisect import bisect_right

from commitlog import Chunk, Gap
from commitlog.log.partition_types import PartitionReader
from router.matching.feed import Feed, FilteredRange
from router.matching.groups import GroupTable

CACHED_BYTES_MAX = 16 << 20
CHUNK_BYTES = 1024  # what a chunk costs beside its rows and frames
TRIM = 64


class RemoteFeed(Feed):
    """The reading side of a partition that another shard writes."""

    def __init__(self, index: int, partition: PartitionReader, groups: GroupTable) -> None:
        super().__init__(index, partition, groups)
        self._cached: list[Chunk] = []
        self._since: list[int] = []  # of each chunk in `_cached`: where the filtered range before it begins
        self._cached_bytes = 0
        self._cached_from = self.visible_lsn  # from here on `_cached` lacks only filtered ranges

    def start_at(self, next_lsn: int) -> None:
        """First contact with the owner: it will send everything from `next_lsn` on."""
        self.visible_lsn = self.committed_lsn = next_lsn
        self.drop_cached()

    def drop_cached(self) -> None:
        """Drop cached chunks: records that were filtered out may be wanted now."""
        self._cached, self._since, self._cached_bytes = [], [], 0
        self._cached_from = self.visible_lsn
        self._runs.clear()

    def owner_restarted(self) -> None:
        """Drop cached reads and routes: unwritten records are lost, and topic ids may have changed."""
        self._runs.clear()
        self.routes.forget()

    def truncate(self, next_lsn: int) -> None:
        """The owner died before it wrote records that were delivered here: their lsns will be reused."""
        self.visible_lsn = self.committed_lsn = next_lsn
        self.pending.clear()
        self.drop_deferred()
        self.drop_cached()

    def chunk_arrived(self, chunk: Chunk) -> list[Chunk]:
        """Add a chunk that the owner sent; returns it, unless it was here before."""
        if chunk.base_lsn < self.visible_lsn:
            return []
        self._since.append(self.visible_lsn)
        self._cached.append(chunk)
        self._cached_bytes += len(chunk.rows) + len(chunk.frames) + CHUNK_BYTES
        if self._cached_bytes > CACHED_BYTES_MAX and len(self._cached) > TRIM:
            gone = self._cached[:TRIM]
            self._cached_bytes -= sum(len(c.rows) + len(c.frames) + CHUNK_BYTES for c in gone)
            self._cached_from = gone[-1].next_lsn
            del self._cached[:TRIM], self._since[:TRIM]
        self.visible_lsn = chunk.next_lsn
        self.pending.append(chunk)
        return [chunk]

    def watermark_moved(self, live_lsn: int, committed_lsn: int) -> list[Chunk]:
        """Everything wanted below `live_lsn` has arrived; returns what readers that learn offsets may see now."""
        self.visible_lsn = max(self.visible_lsn, live_lsn)
        safe = self.take_pending(committed_lsn)
        seen = self.pending[0].base_lsn if self.pending else self.visible_lsn
        self.committed_lsn = max(self.committed_lsn, min(committed_lsn, seen))
        return safe

    def maybe_chunk(self, lsn: int) -> Chunk | Gap | FilteredRange | None:
        if lsn >= self._cached_from:
            at = bisect_right(self._since, lsn) - 1
            if at < 0:
                return FilteredRange(lsn, self._since[0] if self._since else self.visible_lsn)
            chunk = self._cached[at]
            if lsn < chunk.base_lsn:
                return FilteredRange(lsn, chunk.base_lsn)
            if lsn < chunk.next_lsn:
                return chunk
            return FilteredRange(lsn, self._since[at + 1] if at + 1 < len(self._since) else self.visible_lsn)
        return self.read_chunk(lsn)

    def read_chunk(self, lsn: int) -> Chunk | Gap | None:
        """The chunk (or gap) that holds `lsn`, with all its records, or None when its owner must be asked."""
        return self._in_runs(lsn)

    def cache_cold(self, chunks: list[Chunk | Gap]) -> None:
        self._keep_run(chunks)
