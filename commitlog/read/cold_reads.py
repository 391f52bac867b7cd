"""Reads and searches that may wait for a disk: each is an object with a `run`, for any thread.

They have a snapshot of the segment list, and open files of their own."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from commitlog.checksum import crc32
from commitlog.chunk import HEADER_BYTES, Buffer, Chunk, Gap, maybe_header
from commitlog.disk.files import Files
from commitlog.format.segment import ChunkPosition, chunk_in
from commitlog.index.index import load_publishers, place_at, row_of
from commitlog.index.segments import PlaceCache, SegmentFile, segment_at
from commitlog.kernels import rows as kernel
from commitlog.names.publisher_names import PublisherNames
from commitlog.read.opened_segment import OpenedSegment, opened
from commitlog.row_layout import FRAME_WORD, PUBLISHER_WORD, ROW_BYTES, ROW_WORDS

OFFSET_MAX = 2**64 - 1
BLOCK_BYTES_MAX = 1 << 18  # of small chunks that are read at once


def clipped(chunk: Chunk, first_lsn: int, end_lsn: int) -> Chunk:
    """The records first_lsn..end_lsn of a chunk; the chunk itself when that is all of it."""
    first, stop = max(0, first_lsn - chunk.base_lsn), min(chunk.count, end_lsn - chunk.base_lsn)
    if first == 0 and stop == chunk.count:
        return chunk
    words = memoryview(chunk.rows).cast("I")
    start = words[first * ROW_WORDS + FRAME_WORD]
    end = words[stop * ROW_WORDS + FRAME_WORD] if stop < chunk.count else len(chunk.frames)
    rows: Any = memoryview(chunk.rows)[ROW_BYTES * first : ROW_BYTES * stop]
    if start:
        rows = bytearray(rows)
        moved = memoryview(rows).cast("I")
        for at in range(FRAME_WORD, len(moved), ROW_WORDS):
            moved[at] -= start
    tags = b"".join(
        (row - first).to_bytes(4, "little") + chunk.tags[at + 4 : at + 8]
        for at in range(0, len(chunk.tags), 8)
        if first <= (row := int.from_bytes(chunk.tags[at : at + 4], "little")) < stop
    )
    frames = memoryview(chunk.frames)[start:end]
    part = Chunk(chunk.base_lsn + first, stop - first, chunk.base_ts, chunk.flags, rows, frames, tags, chunk.sources)
    part.publishers = chunk.publishers
    return part


class ColdReadTask:
    """Chunks from the one with `lsn` on, below end_lsn, up to `bytes_max`; unreadable records are a Gap."""

    def __init__(
        self,
        files: Files,
        segments: list[SegmentFile],
        cache: PlaceCache,
        lsn: int,
        end_lsn: int,
        bytes_max: int,
        names: PublisherNames | None = None,
    ) -> None:
        """names: of the partition; chunks get the client ids that are not in memory any more with them"""
        self._files, self._segments, self._cache = files, segments, cache
        self._lsn, self._end_lsn, self._bytes_max = lsn, end_lsn, bytes_max
        self._names = names
        self._found: list[Chunk | Gap] = []

    def run(self) -> list[Chunk | Gap]:
        """At least one, when lsn is below the end. raises: OSError"""
        size = 0
        while size < self._bytes_max and self._lsn < self._end_lsn:
            segment = segment_at(self._segments, self._lsn)
            if segment is None:
                self._lost(self._segments[0].base_lsn if self._segments else self._end_lsn, "no segment has them")
                continue
            end = self._end_lsn if segment.end_lsn is None else min(segment.end_lsn, self._end_lsn)
            if self._lsn >= end:
                later = [s.base_lsn for s in self._segments if s.base_lsn > self._lsn]
                self._lost(min(later, default=self._end_lsn), "no segment has them")
                continue
            try:
                size += self._read(segment, end, self._bytes_max - size)
            except FileNotFoundError:
                self._lost(end, f"{segment.path} is gone")
        return self._found

    def _read(self, segment: SegmentFile, end: int, bytes_max: int) -> int:
        """Read chunks from one segment; returns their size."""
        size, before = 0, len(self._found)
        block, block_at = memoryview(b""), 0
        with opened(self._files, segment, self._cache) as (handle, segment, places):
            first = place_at(places, self._lsn)
            for at, place in enumerate(places[first:], first):
                if size >= bytes_max:
                    break
                if place.base_lsn >= end:
                    self._lost(end, f"{segment.path}: damaged before byte {place.position}")
                    break
                if place.next_lsn <= self._lsn:
                    continue  # an index that is no list of chunks in order
                if place.base_lsn > self._lsn:
                    self._lost(place.base_lsn, f"{segment.path}: damaged before byte {place.position}")
                begin, stop = place.position - block_at, place.position + place.total_len - block_at
                if begin < 0 or stop > len(block):
                    length = block_length(places, at, min(bytes_max - size, BLOCK_BYTES_MAX), end)
                    block = memoryview(self._files.read(handle, place.position, length))
                    block_at, begin, stop = place.position, 0, place.total_len
                found = chunk_in(block[begin:stop], segment.path, segment.salt, place)
                if isinstance(found, Chunk):
                    self._found.append(clipped(found, 0, end))
                    self._lsn = found.next_lsn
                else:
                    self._lost(min(found.next_lsn, end), found.why)
                size += place.total_len
            else:
                if self._lsn < end:
                    self._lost(end, f"{segment.path}: damaged at its end")
        if self._names is not None and self._names.has_dropped:
            name_publishers(self._files, segment, self._found[before:], self._names)
        return size

    def _lost(self, end_lsn: int, why: str) -> None:
        end_lsn = min(end_lsn, self._end_lsn)
        if end_lsn > self._lsn:
            self._found.append(Gap(self._lsn, end_lsn, why))
        self._lsn = max(self._lsn, end_lsn)


def name_publishers(files: Files, segment: SegmentFile, found: Iterable[Chunk | Gap], names: PublisherNames) -> None:
    """Give chunks of a segment their client ids: from memory, or else from where the segment has them."""
    chunks = [(chunk, publishers_in(chunk.rows)) for chunk in found if isinstance(chunk, Chunk)]
    missing = names.missing(number for _, numbers in chunks for number in numbers)
    draft = segment.draft
    known: Mapping[int, bytes] = names.written if draft is None else draft.index.publishers
    if not missing <= known.keys():
        stop = segment.logical_end or segment.bytes
        known = load_publishers(files, segment.path, segment.salt, segment.end_lsn or 0, stop, only=missing)
    for chunk, numbers in chunks:
        chunk.publishers = {number: known.get(number) or names.get(number) for number in numbers}


def publishers_in(rows: Buffer) -> set[int]:
    """The numbers of the publishers of some records."""
    return set(memoryview(rows).cast("B").cast("I")[PUBLISHER_WORD::ROW_WORDS])


def block_length(places: list[ChunkPosition], at: int, bytes_max: int, end_lsn: int) -> int:
    """Bytes from the chunk at `at` to the end of the last one, below end_lsn, that is read with it."""
    begin, stop = places[at].position, places[at].position + places[at].total_len
    while (
        (at := at + 1) < len(places)
        and places[at].position >= stop
        and places[at].base_lsn < end_lsn
        and places[at].position + places[at].total_len - begin <= bytes_max
    ):
        stop = places[at].position + places[at].total_len
    return stop - begin


class Flagged:
    """Every chunk with a flag, on disk and in memory, in order."""

    def __init__(
        self, files: Files, segments: list[SegmentFile], cache: PlaceCache, unwritten: list[Chunk], flag: int
    ) -> None:
        self._files, self._segments, self._cache = files, segments, cache
        self._unwritten, self._flag = unwritten, flag

    def run(self, to_lsn: int) -> Iterator[Chunk]:
        """Up to (not with) an lsn; damaged or removed chunks are left out. raises: OSError"""
        for segment in self._segments:
            try:
                with opened(self._files, segment, self._cache) as (_, _, places):
                    pass
            except FileNotFoundError:  # retention removed it
                continue
            for place in places:
                if place.flags & self._flag and place.base_lsn < to_lsn:
                    end = min(place.next_lsn, to_lsn)
                    found = ColdReadTask(self._files, [segment], self._cache, place.base_lsn, end, 1).run()
                    yield from (chunk for chunk in found if isinstance(chunk, Chunk))
        for chunk in self._unwritten:
            if chunk.flags & self._flag and chunk.base_lsn < to_lsn:
                yield clipped(chunk, 0, to_lsn)


class TimeSearch:
    """The first lsn at or after the time `ts_us`; the end of the log if there is none.

    If records before it are lost, the first lost lsn: its record may have been at or after that time.
    """

    def __init__(
        self, files: Files, segments: list[SegmentFile], cache: PlaceCache, unwritten: list[Chunk], ts_us: int,
        next_lsn: int, *, behind_lost: bool = False,
    ) -> None:  # fmt: skip
        """behind_lost: skip lost records: for the end of a range, which must include all that may be earlier"""
        self._files, self._segments, self._cache = files, segments, cache
        self._unwritten, self._ts, self._next_lsn = unwritten, ts_us, next_lsn
        self._behind_lost = behind_lost

    def run(self) -> int:
        """raises: OSError"""
        for segment in self._candidates():
            try:
                lsn = self._in_segment(segment)
            except FileNotFoundError:  # retention removed it
                continue
            if lsn is not None:
                return lsn
        for chunk in self._unwritten:
            if chunk.base_ts >= self._ts:
                return chunk.base_lsn
        return self._next_lsn

    def _candidates(self) -> list[SegmentFile]:
        """The last segment that begins before the time, and all later ones."""
        at = bisect_left(range(len(self._segments)), True, key=self._begins_late)
        return self._segments[max(0, at - 1) :]

    def _begins_late(self, number: int) -> bool:
        following = (s.first_ts for s in self._segments[number:] if s.first_ts)
        return next(following, self._ts) >= self._ts

    def _in_segment(self, segment: SegmentFile) -> int | None:
        with opened(self._files, segment, self._cache) as file:
            return self._in_file(file)

    def _in_file(self, file: OpenedSegment) -> int | None:
        _, segment, places = file
        at = bisect_left(places, self._ts, key=lambda p: p.last_ts)
        reached = places[at - 1].next_lsn if at else segment.base_lsn
        if at == len(places):
            lost = segment.end_lsn is not None and reached < segment.end_lsn
            return reached if lost and not self._behind_lost else None
        place = places[at]
        if self._behind_lost:
            reached = place.base_lsn
        if reached < place.base_lsn or place.base_ts >= self._ts:
            return reached
        rows = maybe_rows(self._files, file, place)
        if not rows:
            return place.next_lsn if self._behind_lost else reached
        return place.base_lsn + int(kernel.first_at_time(rows, self._ts - place.base_ts))


class OffsetSearch:
    """The lsn of a topic's offset, or of the next one that is kept; the end of the log when there is none."""

    def __init__(
        self, files: Files, segments: list[SegmentFile], cache: PlaceCache, unwritten: list[Chunk],
        topic_id: int | None, offset: int, next_lsn: int,
    ) -> None:  # fmt: skip
        self._files, self._segments, self._cache = files, segments, cache
        self._unwritten, self._next_lsn = unwritten, next_lsn
        self._topic_id, self._offset = topic_id, min(max(offset, 0), OFFSET_MAX)

    def run(self) -> int:
        """raises: OSError"""
        if self._topic_id is None:
            return self._next_lsn
        for segment in self._segments:
            try:
                lsn = self._in_segment(segment, self._topic_id)
            except FileNotFoundError:  # retention removed it
                continue
            if lsn is not None:
                return lsn
        for chunk in self._unwritten:
            row = int(kernel.first_of_topic(chunk.rows, self._topic_id, self._offset))
            if row >= 0:
                return chunk.base_lsn + row
        return self._next_lsn

    def _in_segment(self, segment: SegmentFile, topic_id: int) -> int | None:
        with opened(self._files, segment, self._cache) as file:
            return self._in_file(file, topic_id)

    def _in_file(self, file: OpenedSegment, topic_id: int) -> int | None:
        segment = file.segment
        if segment.end_lsn is not None and segment.indexed:
            row = row_of(
                self._files, segment.path, segment.end_lsn, segment.logical_end, topic_id, self._offset,
                salt=segment.salt, sound=segment.index_sound,
            )  # fmt: skip
            segment.index_sound = True
            if row is None:
                return None
            if self._holds(file, segment.base_lsn + row, topic_id):
                return segment.base_lsn + row
        # Not indexed yet, or some rows are lost: then topic offsets do not count rows.
        for place in file.places:
            rows = maybe_rows(self._files, file, place)
            row = int(kernel.first_of_topic(rows, topic_id, self._offset)) if rows else -1
            if row >= 0:
                return place.base_lsn + row
        return None

    def _holds(self, file: OpenedSegment, lsn: int, topic_id: int) -> bool:
        """Whether that record has the topic and offset. Reads its row alone; readers of the chunk check it."""
        places = file.places
        at = place_at(places, lsn)
        if at == len(places) or places[at].base_lsn > lsn:
            return False
        position = places[at].position + HEADER_BYTES + ROW_BYTES * (lsn - places[at].base_lsn)
        row = self._files.read(file.handle, position, ROW_BYTES)
        if len(row) < ROW_BYTES:
            return False
        words = memoryview(row).cast("I")
        return bool(words[0] == topic_id and words[2] | words[3] << 32 == self._offset)


def maybe_rows(files: Files, file: OpenedSegment, place: ChunkPosition) -> bytes:
    """The rows of a chunk; none when they are damaged."""
    raw = files.read(file.handle, place.position, HEADER_BYTES + ROW_BYTES * place.count)
    header = maybe_header(raw[:HEADER_BYTES], file.segment.salt)
    rows = raw[HEADER_BYTES:]
    return rows if header is not None and crc32(rows) == header.rows_crc else b""
