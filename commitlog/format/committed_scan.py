"""Incremental scan of the active segment for committed records. docs/reference/log-format.md, "Reading"."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from commitlog.chunk import SEAL, Header
from commitlog.disk.files import Files
from commitlog.format.segment import HOLDS_RECORDS, SEGMENT_HEADER_BYTES, ChunkPosition, place_of, probe, walk


class CommittedScan:
    """The scan so far. proved: every lsn below it is committed; sealed: the SEAL chunk was found

    marked: the highest committed mark, which may be below the segment; 0: there is none"""

    def __init__(self, salt: int, base_lsn: int) -> None:
        self.salt = salt
        self.proved = base_lsn
        self.marked = 0
        self.sealed = False
        self._position = SEGMENT_HEADER_BYTES
        self._reached = base_lsn
        self._places: list[ChunkPosition] = []

    def advance(self, files: Files, handle: int, size: int) -> None:
        """Scan appended bytes. size: current size of the file"""
        while True:
            self._take(walk(files, handle, self.salt, self._position, size))
            # Whole chunks may follow damage; at the end a write may be in progress.
            following = next(probe(files, handle, self.salt, self._position, size), None)
            if following is None:
                return
            # Preallocated zeros may have been read just before a chunk came there, and what is behind them just after.
            if next(walk(files, handle, self.salt, self._position, size), None) is None:
                self._take([following])

    def _take(self, chunks: Iterable[tuple[int, Header]]) -> None:
        for at, header in chunks:
            self.marked = max(self.marked, header.durable_lsn)
            self.proved = max(self.proved, self.marked)
            self._position = at + header.total_len
            self.sealed = header.kind == SEAL
            if header.kind in HOLDS_RECORDS and header.count and header.base_lsn >= self._reached:
                self._places.append(place_of(at, header))
                self._reached = header.next_lsn

    def places(self) -> list[ChunkPosition]:
        """Of the chunks that begin below `proved`."""
        return self._places[: bisect_left(self._places, self.proved, key=lambda place: place.base_lsn)]
