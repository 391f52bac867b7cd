"""A partition that followers copy: what its writer has told so far, and what of that is at hand in memory.

A piece is a segment's header, or one chunk. What was told is sent at once, while the leader's own disk writes it. What
a follower missed is read from disk, where it is once its group has ended. docs/explanation/replication.md"""
# compiled: hot

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from commitlog.chunk import Buffer
from commitlog.log.partition import Partition
from commitlog.replica.inventory import SegmentState, states_of

KEPT_BYTES_MAX = 1 << 20  # of ended groups kept for a follower that catches up
Place = tuple[str, int]  # the name of a segment, and a byte of it; 0: before its header


class CopyPiece(NamedTuple):
    """before, after: where it begins and ends; base_lsn: of the segment that begins, -1: `data` is a chunk"""

    before: Place
    after: Place
    base_lsn: int
    data: bytes


class Trimmed(NamedTuple):
    """Retention removes everything below."""

    first_lsn: int


class CopiedPartition:
    """key: of the partition in messages; end: behind what was told; lagging: so many followers catch up

    is_irregular: something that was told counts no more; nothing is told until the group has ended"""

    def __init__(self, key: str, partition: Partition, wake: Callable[[], None]) -> None:
        """wake: called on the thread that writes, when there is something to take"""
        self.key, self.partition, self._wake = key, partition, wake
        self.lagging = 0
        self.is_irregular = False
        self._news: deque[tuple[str, int, int, bytes] | Trimmed | None] = deque()  # filled by the writer
        self._pieces: deque[CopyPiece] = deque()
        self._ended = self._ended_bytes = 0  # number and bytes of the pieces whose groups have ended
        self._active_stop = 0
        self.end = self._end_of_log()
        partition.writer.tap = self

    # The tap: on the thread that writes

    def opened(self, name: str, base_lsn: int, header: bytes) -> None:
        self._news.append((name, 0, base_lsn, header))
        self._wake()

    def written(self, name: str, position: int, data: Buffer) -> None:
        self._news.append((name, position, -1, bytes(data)))
        self._wake()

    def trimmed(self, first_lsn: int) -> None:
        self._news.append(Trimmed(first_lsn))
        self._wake()

    def irregular(self) -> None:
        self._news.append(None)
        self._wake()

    # On the loop

    def take(self) -> list[CopyPiece | Trimmed]:
        """What was told since, in order; what was told before it became irregular is of no use."""
        taken: list[CopyPiece | Trimmed] = []
        news = self._news
        while news:
            told = news.popleft()
            if told is None:
                self.is_irregular = True
                taken.clear()
            elif isinstance(told, Trimmed):
                taken.append(told)
            else:
                name, position, base_lsn, data = told
                piece = CopyPiece(self.end, (name, position + len(data)), base_lsn, data)
                self.end = piece.after
                self._pieces.append(piece)
                taken.append(piece)
        return taken

    def group_ended(self) -> bool:
        """After `take`, when the group in flight has ended: what it wrote is on disk. Whether it was irregular."""
        was_irregular, self.is_irregular = self.is_irregular, False
        files = self.partition.segments.files
        self._active_stop = self.partition.writer.position if files and files[-1].end_lsn is None else 0
        if was_irregular:
            self._pieces.clear()
            self._ended = self._ended_bytes = 0
            self.end = self._end_of_log()
            return True
        pieces = self._pieces
        if not self.lagging:
            pieces.clear()
            self._ended = self._ended_bytes = 0
            return False
        for at in range(self._ended, len(pieces)):
            self._ended_bytes += len(pieces[at].data)
        self._ended = len(pieces)
        while self._ended_bytes > KEPT_BYTES_MAX:
            self._ended_bytes -= len(pieces.popleft().data)
            self._ended -= 1
        return False

    def segments(self) -> list[SegmentState]:
        """Those of groups that have ended, all of which can be read from disk."""
        partition = self.partition
        return states_of(partition.segments.files, partition.directory, partition.written_lsn, self._active_stop)

    def maybe_behind(self, place: Place) -> list[CopyPiece] | None:
        """The pieces behind a place, if they are at hand."""
        if self.is_irregular:
            return None
        if place == self.end:
            return []
        for at, piece in enumerate(self._pieces):
            if piece.before == place or (piece.base_lsn >= 0 and place == (piece.after[0], 0)):
                return list(self._pieces)[at:]
        return None

    def _end_of_log(self) -> Place:
        segments = self.segments()
        return (segments[-1].name, segments[-1].stop) if segments else ("", 0)

    def salt_of(self, name: str) -> int:
        """Of a segment's file; 0: it is not known, or has just begun."""
        path = self.path_of(name)
        return next((each.salt for each in reversed(self.partition.segments.files) if each.path == path), 0)

    def path_of(self, name: str) -> str:
        return f"{self.partition.directory}/{name}"
