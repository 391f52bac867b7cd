"""The segments of one partition, in order: which lsn is in which file.

Lives on the loop thread; other threads get a snapshot. Knows no record."""

from __future__ import annotations

from bisect import bisect_right

from commitlog.files import Files
from commitlog.index import Draft, Index, load_index
from commitlog.retention import Retention, SealJob
from commitlog.segment import Place


class SegmentFile:
    """One segment. end_lsn: None while it is written to; stop: the byte where what counts ends, None for all."""

    __slots__ = ("base_lsn", "draft", "end_lsn", "index", "indexed", "path", "places", "salt", "size", "stop")

    def __init__(self, path: str, base_lsn: int, salt: int) -> None:
        self.path = path
        self.base_lsn = base_lsn
        self.salt = salt
        self.end_lsn: int | None = None
        self.stop: int | None = None
        self.size = 0
        self.places: list[Place] = []
        self.index: Index | None = None
        self.draft: Draft | None = None  # of a segment sealed in this run, until it is indexed
        self.indexed = False

    def load(self, files: Files) -> Index:
        """The index of a sealed segment, kept once loaded."""
        if self.index is None:
            self.index, _ = load_index(files, self.path, self.stop)
        return self.index

    def chunk_places(self, files: Files) -> list[Place]:
        """Where its chunks stand."""
        if self.places or self.end_lsn is None:
            return list(self.places)
        return self.load(files).places


class SegmentList:
    def __init__(self, first_lsn: int) -> None:
        self.files: list[SegmentFile] = []
        self.first_lsn = first_lsn
        self.removing = False

    @property
    def active(self) -> SegmentFile:
        return self.files[-1]

    def snapshot(self) -> list[SegmentFile]:
        return list(self.files)

    def opened(self, segment: SegmentFile) -> None:
        if self.files and self.files[-1].end_lsn is None:
            self.files[-1].end_lsn = segment.base_lsn
        self.files.append(segment)

    def sealed(self, end_lsn: int, size: int, draft: Draft) -> None:
        self.active.end_lsn = end_lsn
        self.active.size = size
        self.active.draft = draft

    def at(self, lsn: int) -> SegmentFile | None:
        return segment_at(self.files, lsn)

    def take_seal_job(self, files: Files) -> SealJob | None:
        for segment in self.files:
            if segment.end_lsn is not None and not segment.indexed:
                segment.indexed = True
                return SealJob(files, segment)
        return None

    def removed(self, retention: Retention) -> None:
        """The removal has run: forget the segments."""
        self.removing = False
        if retention.done:
            self.first_lsn = max(self.first_lsn, retention.first_lsn)
            self.files = [s for s in self.files if s.path not in retention.paths]


def segment_at(segments: list[SegmentFile], lsn: int) -> SegmentFile | None:
    """The segment whose range holds `lsn`, or None."""
    at = bisect_right(segments, lsn, key=lambda s: s.base_lsn) - 1
    # An empty segment has the base lsn of the next one.
    while at >= 0 and segments[at].end_lsn is not None and segments[at].end_lsn == segments[at].base_lsn:
        at -= 1
    return segments[at] if at >= 0 else None
