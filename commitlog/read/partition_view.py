"""One partition, read from its files by any process, without lock or writes.

The files show which records may be read (`end_lsn`). If no live process holds the directory: every whole chunk, as the
next start keeps them. Otherwise: sealed and abandoned segments, and the last one up to the highest committed mark in
its chunks, which an idle broker writes by itself. Of a copy in a cluster, held or not, only what its marks prove:
whatever is behind them may be cut when another node leads.
docs/reference/log-format.md, "Reading"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from commitlog.chunk import Chunk, Gap
from commitlog.disk.files import Files
from commitlog.format.committed_scan import CommittedScan
from commitlog.format.directory import FoundSegment, SegmentListing, listing
from commitlog.format.manifest import Manifest
from commitlog.format.segment import SEGMENT_HEADER_BYTES, salt_now
from commitlog.format.tail_scan import examine
from commitlog.index.dictionary import maybe_snapshot
from commitlog.index.index import load_publishers, maybe_index, place_at, read_segment
from commitlog.index.index_builder import Index
from commitlog.index.segment_view import ScanCache, SegmentView, hits
from commitlog.index.segments import PlaceCache, SegmentFile
from commitlog.read.cold_reads import ColdReadTask, OffsetSearch, TimeSearch, clipped
from commitlog.read.opened_segment import opened

READ_BYTES = 1 << 22
INDEX_PART = 8  # of a segment's records, one in so many: for fewer its index is not worth reading


class ListedFile(NamedTuple):
    """The file of a segment as it was listed. is_finished: nothing is added to it any more, and all of it counts"""

    size: int
    is_finished: bool


class PartitionView:
    """One partition as it was when the view was made. Every method may raise OSError."""

    def __init__(
        self, files: Files, directory: str, stream: str, generation: int, number: int, held: bool,
        earlier: PartitionView | None = None, *, only_marked: bool = False,
    ) -> None:  # fmt: skip
        """held: a live process holds the directory; earlier: a view of the same partition, whose scans are reused

        only_marked: of a copy in a cluster, the records below its highest committed mark"""
        self._files = files
        self.directory, self.stream, self.generation, self.number = directory, stream, generation, number
        self.held = held
        self.awaits_mark = False  # a segment has ended, and a mark is yet to say that it is committed
        self._segments: list[SegmentFile] = []
        self._listed: dict[str, ListedFile] = {}
        self._scans: ScanCache = ScanCache() if earlier is None else earlier._scans
        self._cache = PlaceCache()
        self._names: tuple[dict[int, bytes], dict[int, bytes]] | None = None
        listed = self._listing()
        if not self._take_all(listed) and held:
            # Retention removed the last one during the listing, or it was packed: later ones exist now.
            self._segments, self._listed = [], {}
            listed = self._listing()
            self._take_all(listed)
        self.unreadable = [f"{path}: {why}" for path, why in listed.unreadable]
        # Records that retention removed meanwhile are no gap: the manifest has that before a file is removed.
        first_lsn = self._first_lsn() if held else listed.first_lsn
        self._segments = [s for s in self._segments if s.base_lsn >= (first_lsn or 0)]
        self._scans.keep({s.path for s in self._segments})
        base_lsn = self._segments[0].base_lsn if self._segments else 0
        self.first_lsn = base_lsn if first_lsn is None else first_lsn
        if only_marked:
            self._clip_to_marks()
        self.end_lsn = max((s.end_lsn or 0 for s in self._segments), default=self.first_lsn)
        if not held and not only_marked:
            self.end_lsn = max(self.end_lsn, listed.ended_lsn)

    def _clip_to_marks(self) -> None:
        """Leave out what no mark proves. cost: a scan of the headers of the last segments, of one as a rule"""
        marked = 0
        for segment in reversed(self._segments):
            marked = max(marked, self._scan(segment).marked)
            if marked >= segment.base_lsn:
                break  # everything before this segment is below the mark
        for segment in self._segments:
            if (segment.end_lsn or 0) > marked:
                self.awaits_mark |= self._listed[segment.path].is_finished
                self._listed[segment.path] = self._listed[segment.path]._replace(is_finished=False)
                segment.end_lsn = max(segment.base_lsn, marked)
        self._segments = [s for s in self._segments[:1] if s.base_lsn >= marked] + [
            s for s in self._segments if s.base_lsn < marked
        ]

    def _scan(self, segment: SegmentFile) -> CommittedScan:
        """Up to the file's end as it is now."""
        handle = self._files.open(segment.path)
        try:
            return self._advanced(handle, segment.path, segment, self._listed[segment.path].size)
        finally:
            self._files.close(handle)

    def _advanced(self, handle: int, path: str, segment: SegmentFile, size: int) -> CommittedScan:
        scan = self._scans.scans.get(path)
        if scan is None or scan.salt != segment.salt:
            scan = self._scans.scans[path] = CommittedScan(segment.salt, segment.base_lsn)
        scan.advance(self._files, handle, size)
        return scan

    def _take_all(self, listed: SegmentListing) -> bool:
        """Whether the last segment was still there."""
        is_there = True
        for found in listed.segments:
            try:
                self._take(found)
                is_there = True
            except FileNotFoundError:
                is_there = False
        return is_there

    def _first_lsn(self) -> int | None:
        edits = Manifest(self._files, self.directory).load()
        return max((edit["lsn"] for edit in edits if edit["edit"] == "first"), default=None)

    def _listing(self) -> SegmentListing:
        edits = Manifest(self._files, self.directory).load()
        return listing(self._files, self.directory, edits, self.stream, self.number)

    @property
    def name(self) -> str:
        """As replay subscribers see it: main/g1/p0."""
        return f"{self.stream}/g{self.generation}/p{self.number}"

    @property
    def last_ts(self) -> int:
        """The time of its newest record, µs since 1970; 0 when it has none."""
        return next((found for s in reversed(self._segments) if (found := self._view(s).last_ts)), 0)

    def segments(self) -> list[SegmentView]:
        return [self._view(segment) for segment in self._segments]

    def segment_of(self, lsn: int) -> str:
        """The name of the file that has a record; "": none has."""
        found = (s.path for s in self._segments if s.base_lsn <= lsn < (s.end_lsn or 0))
        return next(found, "").rpartition("/")[2]

    def _view(self, s: SegmentFile) -> SegmentView:
        size, is_finished = self._listed[s.path]
        try:
            # Of what may be another file by now only these: who follows the one that was listed is to notice.
            with opened(self._files, s, self._cache) as (_, _, places):
                pass
        except FileNotFoundError:  # retention removed it since
            places = []
        return SegmentView(
            s.path, s.base_lsn, s.end_lsn or s.base_lsn, s.sealed, size, s.salt, s.logical_end,
            is_finished, places,
        )  # fmt: skip

    def names(self) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """Topic id -> topic, publisher number -> client id."""
        if self._names is None:
            snapshot = maybe_snapshot(self._files, self.directory)
            topics = dict(enumerate(snapshot.topics)) if snapshot is not None else {}
            publishers = dict(snapshot.publishers) if snapshot is not None else {}
            for segment in self._segments:
                if snapshot is None or (segment.end_lsn or 0) > snapshot.lsn:
                    index = self._index(segment)
                    topics.update(index.names)
                    publishers.update(index.publishers)
            self._names = topics, publishers
        return self._names

    def publishers(self, from_lsn: int, to_lsn: int) -> dict[int, bytes]:
        """Publisher number -> client id, for the publishers of these records."""
        found: dict[int, bytes] = {}
        for segment in self._segments:
            end = segment.end_lsn or 0
            if segment.base_lsn < to_lsn and from_lsn < end:
                try:
                    found.update(self._publishers(segment, end))
                except FileNotFoundError:  # retention removed it since
                    pass
        return found

    def segment_names(self, base_lsn: int) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """As `names`, of the topics and publishers of one segment: it names all that it uses."""
        segment = next((s for s in self._segments if s.base_lsn == base_lsn and s.end_lsn != base_lsn), None)
        if segment is None:
            return {}, {}
        index = self._index(segment)
        return index.names, index.publishers

    def _publishers(self, segment: SegmentFile, end_lsn: int) -> dict[int, bytes]:
        key = segment.path, segment.salt
        stop, known = self._scans.publishers.get(key, (SEGMENT_HEADER_BYTES, {}))
        if stop < segment.logical_end:
            known |= load_publishers(self._files, segment.path, segment.salt, end_lsn, segment.logical_end, stop)
            self._scans.publishers[key] = segment.logical_end, known
        return known

    def _index(self, segment: SegmentFile) -> Index:
        try:
            index = maybe_index(self._files, segment.path, segment.end_lsn or 0, segment.logical_end)
            return index or read_segment(self._files, segment.path, segment.logical_end, salt=segment.salt)
        except FileNotFoundError:
            return Index()

    def _take(self, found: FoundSegment) -> None:
        header = found.opening.header
        segment = SegmentFile(found.path, header.base_lsn, header.salt, found.opening.first_ts)
        segment.indexed = True
        if found.edit is not None:
            segment.end_lsn, segment.logical_end = found.edit["end_lsn"], found.edit["stop"]
            segment.sealed = found.edit["edit"] == "seal"
        else:
            handle = self._files.open(found.path)
            try:
                if self.held and found.limit_lsn is None:
                    if salt_now(self._files, handle, found.path, segment.salt) != segment.salt:
                        raise FileNotFoundError(found.path)  # it was packed meanwhile, and later ones exist
                    self._take_active(handle, found, segment)
                else:
                    self._take_ended(handle, found, segment)
            finally:
                self._files.close(handle)
        if found.limit_lsn is not None:
            segment.end_lsn = min(segment.end_lsn or 0, found.limit_lsn)
        self._segments.append(segment)
        is_finished = found.edit is not None or found.limit_lsn is not None
        self._listed[found.path] = ListedFile(found.size, is_finished)

    def _take_active(self, handle: int, found: FoundSegment, segment: SegmentFile) -> None:
        """A segment that a broker writes to: committed up to its marks."""
        # Its size as it was listed may be that of the file before, if it was packed in between.
        size = max(found.size, self._files.size(found.path))
        scan = self._advanced(handle, found.path, segment, size)
        segment.places, segment.end_lsn, segment.sealed = scan.places(), scan.proved, scan.sealed
        segment.logical_end = SEGMENT_HEADER_BYTES
        if segment.places:
            segment.logical_end = segment.places[-1].position + segment.places[-1].total_len

    def _take_ended(self, handle: int, found: FoundSegment, segment: SegmentFile) -> None:
        """A segment that no broker writes to, without an end in the manifest."""
        # Nobody writes to it any more, and it only shrinks by the zeros behind its end: same size, same file.
        key = (found.path, found.size, found.limit_lsn)
        if key not in self._scans.tails:
            salt, base_lsn = segment.salt, segment.base_lsn
            self._scans.tails[key] = examine(
                self._files, handle, found.path, salt, found.size, base_lsn, found.limit_lsn
            )
        tail = self._scans.tails[key]
        segment.end_lsn, segment.logical_end, segment.sealed = tail.end_lsn, tail.logical_end, tail.sealed

    # Records

    def chunks(self, from_lsn: int, to_lsn: int) -> Iterator[Chunk | Gap]:
        """Records from_lsn..to_lsn in order, clipped at both ends; unreadable ones as a Gap."""
        lsn = max(from_lsn, self.first_lsn)
        to_lsn = min(to_lsn, self.end_lsn)
        while lsn < to_lsn:
            for found in ColdReadTask(self._files, self._segments, self._cache, lsn, to_lsn, READ_BYTES).run():
                yield clipped(found, lsn, to_lsn) if isinstance(found, Chunk) else found
                lsn = found.next_lsn

    def spans_of(self, from_lsn: int, to_lsn: int, wants: Callable[[bytes], bool]) -> Iterator[tuple[int, int]]:
        """Parts of from_lsn..to_lsn, in order, that contain every record of a wanted topic, and everything without an
        index; the rest need not be read.

        cost: one index a segment, read only where the range has a fair part of the segment
        """
        begin = reached = from_lsn
        for start, end in self._parts(from_lsn, to_lsn, wants):
            if start > reached:
                if begin < reached:
                    yield begin, reached
                begin = start
            reached = end
        if begin < reached:
            yield begin, reached

    def _parts(self, from_lsn: int, to_lsn: int, wants: Callable[[bytes], bool]) -> Iterator[tuple[int, int]]:
        """As `spans_of`, without joining adjacent parts."""
        at = from_lsn
        for segment in self._segments:
            end = min(segment.end_lsn or 0, to_lsn)
            if end <= at:
                continue
            if at < segment.base_lsn:
                yield at, min(segment.base_lsn, to_lsn)
                at = segment.base_lsn
            if at < end:
                yield from self._parts_of(segment, at, end, wants)
                at = end
        if at < to_lsn:
            yield at, to_lsn

    def _parts_of(
        self, segment: SegmentFile, start: int, end: int, wants: Callable[[bytes], bool]
    ) -> Iterator[tuple[int, int]]:
        """Of one segment."""
        end_lsn = segment.end_lsn or 0
        index = None
        if self._listed[segment.path].is_finished and (end - start) * INDEX_PART >= end_lsn - segment.base_lsn:
            try:
                index = maybe_index(self._files, segment.path, end_lsn, segment.logical_end)
            except FileNotFoundError:  # retention removed it since
                pass
        # An index made after rows were lost does not have them.
        if index is None or len(index.rows) != sum(place.count for place in index.places):
            yield start, end
            return
        at = start
        for place, hit in zip(index.places, hits(index, segment.base_lsn, wants), strict=True):
            if at >= end:
                return
            if at < place.base_lsn:
                yield at, min(place.base_lsn, end)  # a gap: reading reports it
                at = place.base_lsn
            if hit and at < min(place.next_lsn, end):
                yield at, min(place.next_lsn, end)
            at = max(at, place.next_lsn)
        if at < end:
            yield at, end

    def cold_read(self, lsn: int, bytes_max: int, cache: PlaceCache) -> ColdReadTask:
        """A read from `lsn` on, below `end_lsn`. cache: of this partition's segments, which outlives views"""
        return ColdReadTask(self._files, self._segments, cache, lsn, self.end_lsn, bytes_max)

    def end_within(self, from_lsn: int, to_lsn: int, bytes_max: int) -> int:
        """The end of the last whole chunk within `bytes_max` bytes from a record on; of one chunk at least."""
        lsn = max(from_lsn, self.first_lsn)
        for segment in self._segments:
            if (segment.end_lsn or 0) <= lsn:
                continue
            try:
                with opened(self._files, segment, self._cache) as (_, _, places):
                    pass
            except FileNotFoundError:  # retention removed it since
                continue
            for place in places[place_at(places, lsn) :]:
                if place.base_lsn >= to_lsn or (bytes_max < place.total_len and lsn > from_lsn):
                    return min(lsn, to_lsn)
                bytes_max -= place.total_len
                lsn = place.next_lsn
        return to_lsn

    def find_time(self, ts_us: int, *, behind_lost: bool = False) -> int:
        """The first lsn at or after that time; end_lsn when there is none. behind_lost: see `TimeSearch`"""
        found = TimeSearch(
            self._files, self._segments, self._cache, [], ts_us, self.end_lsn, behind_lost=behind_lost
        ).run()
        return min(max(found, self.first_lsn), self.end_lsn)

    def find_offset(self, topic: bytes, offset: int) -> int:
        """The lsn of a topic's offset, or of the next one that is kept; end_lsn when there is none."""
        number = next((number for number, name in self.names()[0].items() if name == topic), None)
        found = OffsetSearch(self._files, self._segments, self._cache, [], number, offset, self.end_lsn).run()
        return min(max(found, self.first_lsn), self.end_lsn)
