"""The router's view of one partition: chunks by lsn, and two watermarks.

`visible_lsn`: readers that learn no offset have been given everything below it. A chunk of QoS 0 only is visible at
once, for nothing was promised about it. `committed_lsn`: a crash cannot lose what is below; readers that learn or
store offsets stop there. A chunk that must be read from disk is None here, and an effect of the caller's."""
# compiled: hot

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import NamedTuple

from commitlog import Gap, NotInMemory
from commitlog.chunk import FLAG_QOS, Chunk
from commitlog.log.partition_types import PartitionReader
from router.matching.groups import GroupTable
from router.matching.routes import RouteTable
from router.readers.reader import Reader

RUNS_MAX = 8  # cached reads: readers at different places do not evict each other's


class FilteredRange(NamedTuple):
    """Records of another shard's partition that nobody here wanted when they came."""

    base_lsn: int
    next_lsn: int


class Feed:
    """The reading side of one partition of the log."""

    def __init__(self, index: int, partition: PartitionReader, groups: GroupTable) -> None:
        self.index = index
        self.partition = partition
        self.routes = RouteTable(groups, partition.topic_names)
        self.visible_lsn: int = partition.next_lsn
        self.committed_lsn: int = partition.next_lsn
        self.pending: list[Chunk] = []
        self._runs: deque[tuple[list[int], list[Chunk | Gap]]] = deque(maxlen=RUNS_MAX)
        self.ahead: list[Reader] = []  # their next record is not committed yet
        self.waiters: dict[int, list[Reader]] = {}  # lsn being read from disk -> readers that wait for it
        # Visible, not yet delivered to (live readers, those that learn offsets): topics are still being matched.
        self.deferred: tuple[deque[Chunk], deque[Chunk]] = deque(), deque()
        self._deferred_from = [0, 0]

    def appended(self, chunk: Chunk) -> bool:
        """Add a new chunk; returns whether it is visible to readers that learn no offset."""
        self.pending.append(chunk)
        if chunk.base_lsn == self.visible_lsn and not chunk.flags & FLAG_QOS:
            self.visible_lsn = chunk.next_lsn
            return True
        return False

    def committed(self, lsn: int) -> tuple[list[Chunk], list[Chunk]]:
        """Move the committed lsn; returns what is newly visible (to live readers, to those that learn offsets)."""
        live: list[Chunk] = []
        safe = self.take_pending(lsn)
        for chunk in safe:
            self.committed_lsn = chunk.next_lsn
            if chunk.base_lsn >= self.visible_lsn:
                live.append(chunk)
                self.visible_lsn = chunk.next_lsn
        for chunk in self.pending:
            if chunk.base_lsn == self.visible_lsn and not chunk.flags & FLAG_QOS:
                live.append(chunk)
                self.visible_lsn = chunk.next_lsn
            elif chunk.base_lsn > self.visible_lsn:
                break
        return live, safe

    def take_pending(self, lsn: int) -> list[Chunk]:
        """Those of `pending` that end below `lsn`, which leave it."""
        pending, count = self.pending, 0
        for chunk in pending:
            if chunk.next_lsn > lsn:
                break
            count += 1
        if count == len(pending):
            self.pending = []
            return pending
        taken = pending[:count]
        del pending[:count]
        return taken

    def mark(self, committed_only: bool) -> int:
        """The watermark up to which a reader may read; live readers have been given everything below."""
        if self.deferred[committed_only]:
            return self._deferred_from[committed_only]
        return self.committed_lsn if committed_only else self.visible_lsn

    def defer(self, chunk: Chunk, row: int, committed_only: bool) -> None:
        """Defer a chunk from `row` on, and with it everything that follows."""
        self.deferred[committed_only].append(chunk)
        self._deferred_from[committed_only] = chunk.base_lsn + row

    def delivered_up_to(self, row: int, committed_only: bool) -> None:
        """The first deferred chunk was delivered up to (not with) `row`."""
        held = self.deferred[committed_only]
        self._deferred_from[committed_only] = held[0].base_lsn + row
        if row == held[0].count:
            held.popleft()
            if held:
                self._deferred_from[committed_only] = held[0].base_lsn

    def drop_deferred(self) -> None:
        """Forget deferred chunks: their records will get other lsns."""
        for held in self.deferred:
            held.clear()

    @property
    def deferred_bytes(self) -> int:
        """Bytes of frames deferred for live readers."""
        return sum([len(chunk.frames) for chunk in self.deferred[0]]) if self.deferred[0] else 0

    def maybe_chunk(self, lsn: int) -> Chunk | Gap | FilteredRange | None:
        """As `read_chunk`; of another shard's partition what its owner sent, which may leave out records."""
        return self.read_chunk(lsn)

    def _in_runs(self, lsn: int) -> Chunk | Gap | None:
        """The chunk (or gap) that holds `lsn`, among the cached reads."""
        for lsns, chunks in self._runs:
            at = bisect_right(lsns, lsn) - 1
            if at >= 0 and lsn < chunks[at].next_lsn:
                return chunks[at]
        return None

    def read_chunk(self, lsn: int) -> Chunk | Gap | None:
        """The chunk (or gap) that holds `lsn`, with all its records, or None when it has to be read from disk."""
        found = self._in_runs(lsn)
        if found is not None:
            return found
        try:
            there = self.partition.read(lsn, 1)
        except NotInMemory:
            return None
        return there[0] if there else None

    def cache_cold(self, chunks: list[Chunk | Gap]) -> None:
        """Cache all that was read from disk at once: nothing of it is read twice by readers that follow each other."""
        self._keep_run(chunks)

    def _keep_run(self, chunks: list[Chunk | Gap]) -> None:
        if chunks:
            self._runs.append(([chunk.base_lsn for chunk in chunks], chunks))
