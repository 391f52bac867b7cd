"""The segments of one partition, in order: which lsn is in which file.

Belongs to the loop thread; other threads get a snapshot."""
# compiled: hot

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from threading import Lock

from commitlog.disk.clock_guard import Jump
from commitlog.disk.files import Files
from commitlog.format.chunk_position import ChunkPosition
from commitlog.index.dictionary import Dictionary
from commitlog.index.index import maybe_places, scan_places
from commitlog.index.index_builder import IndexBuilder

PLACES_KEPT = 32  # segments; of one of 64 MiB, 3 MiB of memory at most


class SegmentFile:
    """One segment. end_lsn: None while it is active; logical_end: the end of its last valid chunk;
    allocated: the end of the zeros that were written ahead, 0: none"""

    __slots__ = (
        "allocated", "base_lsn", "draft", "end_lsn", "first_ts", "index_sound", "indexed", "is_packed", "logical_end",
        "path", "places", "salt", "sealed", "tried_at",
    )  # fmt: skip

    def __init__(self, path: str, base_lsn: int, salt: int, first_ts: int = 0) -> None:
        self.path = path
        self.base_lsn = base_lsn
        self.salt = salt
        self.first_ts = first_ts  # µs since 1970 of its first chunk, 0 when it has none
        self.end_lsn: int | None = None
        self.logical_end = 0
        self.sealed = False
        self.places: list[ChunkPosition] = []  # until it is indexed
        self.draft: IndexBuilder | None = None  # of a segment sealed in this run, until it is indexed
        self.indexed = False
        self.index_sound = False  # its index's checksums were found right in this run
        self.is_packed = False  # or it was found that it need not be
        self.tried_at = 0
        self.allocated = 0

    @property
    def bytes(self) -> int:
        """Up to the logical end."""
        if self.end_lsn is None and self.places:
            return self.places[-1].position + self.places[-1].total_len
        return self.logical_end

    @property
    def disk_bytes(self) -> int:
        """What it takes of the disk."""
        return max(self.bytes, self.allocated)

    def take(self, place: ChunkPosition) -> None:
        if not self.first_ts:
            self.first_ts = place.base_ts
        self.places.append(place)


class PlaceCache:
    """LRU cache of the chunk positions of finished segments, by path and salt. For any thread."""

    def __init__(self, segments_max: int = PLACES_KEPT) -> None:
        self._segments_max = segments_max
        self._kept: OrderedDict[tuple[str, int], list[ChunkPosition]] = OrderedDict()
        self._lock = Lock()

    def places(self, files: Files, segment: SegmentFile, handle: int) -> list[ChunkPosition]:
        """handle: of the segment's file; see `commitlog.read.opened_segment`. raises: OSError"""
        if segment.end_lsn is None:
            return list(segment.places)
        places = segment.places
        if places or segment.end_lsn == segment.base_lsn:
            return places
        key = segment.path, segment.salt
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        stop = segment.logical_end
        found = maybe_places(files, segment.path, segment.end_lsn, stop)
        places = scan_places(files, handle, segment.salt, segment.base_lsn, stop) if found is None else found
        with self._lock:
            self._kept[key] = places
            while len(self._kept) > self._segments_max:
                self._kept.popitem(last=False)
        return places


class SegmentList:
    __slots__ = ("cache", "dictionary", "files", "first_lsn", "jumps", "removing", "replacing")

    def __init__(self, first_lsn: int, files: list[SegmentFile], dictionary: Dictionary) -> None:
        self.files = files
        self.first_lsn = first_lsn
        self.removing = self.replacing = False
        self.jumps: list[Jump] = []  # of the clock, while these segments were written
        self.cache = PlaceCache()
        self.dictionary = dictionary

    @property
    def active(self) -> SegmentFile:
        return self.files[-1]

    def last(self) -> SegmentFile:
        """As `active`, for compiled callers."""
        return self.files[-1]

    @property
    def bytes(self) -> int:
        """What all segments take of the disk. Cost: linear in segments"""
        return sum(segment.disk_bytes for segment in self.files)

    def snapshot(self) -> list[SegmentFile]:
        return list(self.files)

    def ended(self, end_lsn: int, logical_end: int, draft: IndexBuilder | None) -> None:
        """The active segment is finished: sealed with a draft of its index, or abandoned without one."""
        self.active.end_lsn, self.active.logical_end = end_lsn, logical_end
        self.active.draft, self.active.sealed = draft, draft is not None
        if draft is not None:
            self.active.allocated = 0  # one that is given up keeps it until the next start

    def next_unindexed(self) -> SegmentFile | None:
        """A finished segment to index, marked as such; a failed one is retried after further segments."""
        for segment in self.files:
            if segment.end_lsn is not None and not segment.indexed and segment.tried_at != len(self.files):
                segment.indexed = True
                segment.tried_at = len(self.files)
                return segment
        return None

    def next_unpacked(self, below: int) -> SegmentFile | None:
        """A finished and indexed segment that was not looked at yet, marked as such; never the last one.

        below: only one that ends at or below this lsn"""
        for segment in self.files[:-1]:
            is_settled = segment.indexed and segment.draft is None and not segment.places
            if not segment.is_packed and is_settled and segment.end_lsn is not None and segment.end_lsn <= below:
                segment.is_packed = True
                return segment
        return None

    def time_near(self, lsn: int, next_lsn: int, last_ts: int) -> int:
        """The approximate time of a record, interpolated between the starts of segments; 0: not known.

        next_lsn, last_ts: of the log's end"""
        files = self.files
        at = bisect_right(files, lsn, key=lambda s: s.base_lsn) - 1
        if at < 0:
            return files[0].first_ts if files else 0
        first = files[at]
        following = files[at + 1] if at + 1 < len(files) else None
        end_lsn = following.base_lsn if following is not None else next_lsn
        end_ts = following.first_ts if following is not None and following.first_ts else last_ts
        if not first.first_ts or end_lsn <= first.base_lsn:
            return first.first_ts
        return first.first_ts + (end_ts - first.first_ts) * (lsn - first.base_lsn) // (end_lsn - first.base_lsn)

    def replace(self, old: SegmentFile, new: SegmentFile) -> None:
        """Another file is at the path of a segment, with the same records. Snapshots keep the old one."""
        self.files = [new if segment is old else segment for segment in self.files]

    def forget(self, paths: list[str], first_lsn: int) -> None:
        """These files were removed; the first record kept is first_lsn."""
        self.first_lsn = max(self.first_lsn, first_lsn)
        self.files = [s for s in self.files if s.path not in paths]


def segment_at(segments: list[SegmentFile], lsn: int) -> SegmentFile | None:
    """The segment with `lsn` in its range, or else the last that begins before it; None if none does."""
    at = bisect_right(segments, lsn, key=lambda s: s.base_lsn) - 1
    # An empty segment has the base lsn of the next one.
    while at > 0 and segments[at].end_lsn == segments[at].base_lsn:
        at -= 1
    return segments[at] if at >= 0 else None
