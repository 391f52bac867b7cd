"""Reads and searches that may wait for a disk: each is an object with a `run`, for any thread.

They hold a snapshot of what the loop thread knew, and open files of their own."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from commitlog.chunk import HEADER_BYTES, Chunk, Gap
from commitlog.files import Files
from commitlog.index import place_at
from commitlog.kernels import rows as kernel
from commitlog.segment import Place, read_chunk
from commitlog.segments import SegmentFile, segment_at


def clipped(chunk: Chunk, end_lsn: int) -> Chunk:
    """The records of a chunk below `end_lsn`."""
    if chunk.next_lsn <= end_lsn:
        return chunk
    count = end_lsn - chunk.base_lsn
    frames_end = memoryview(chunk.rows).cast("I")[count * 8 + 1]
    rows, frames = memoryview(chunk.rows)[: 32 * count], memoryview(chunk.frames)[:frames_end]
    return Chunk(chunk.base_lsn, count, chunk.base_ts, chunk.flags, rows, frames)


class ColdRead:
    """Chunks from the one that holds `lsn` on, below end_lsn, up to `bytes_max`; damage comes as a Gap."""

    def __init__(
        self, files: Files, segments: list[SegmentFile], lsn: int, end_lsn: int, bytes_max: int
    ) -> None:
        self._files, self._segments = files, segments
        self._lsn, self._end_lsn, self._bytes_max = lsn, end_lsn, bytes_max

    def run(self) -> list[Chunk | Gap]:
        found: list[Chunk | Gap] = []
        lsn, size = self._lsn, 0
        while size < self._bytes_max and lsn < self._end_lsn:
            segment = segment_at(self._segments, lsn)
            if segment is None:
                break
            places = segment.chunk_places(self._files)
            at = place_at(places, lsn)
            if at == len(places) or places[at].base_lsn > lsn:
                found.append(self._hole(segment, places, at, lsn))
                lsn = found[-1].next_lsn
                continue
            handle = self._files.open(segment.path)
            try:
                for place in places[at:]:
                    if place.base_lsn != lsn and found and place.base_lsn != found[-1].next_lsn:
                        break
                    if size >= self._bytes_max or place.base_lsn >= self._end_lsn:
                        break
                    chunk = read_chunk(self._files, handle, segment.path, segment.salt, place)
                    found.append(clipped(chunk, self._end_lsn) if isinstance(chunk, Chunk) else chunk)
                    size += place.total_len
                    lsn = place.next_lsn
            finally:
                self._files.close(handle)
        return found

    def _hole(self, segment: SegmentFile, places: list[Place], at: int, lsn: int) -> Gap:
        """Records that no chunk has, up to the next that one has."""
        if at < len(places):
            end = places[at].base_lsn
        else:
            later = [s.base_lsn for s in self._segments if s.base_lsn > lsn]
            end = min(later) if later else self._end_lsn
        return Gap(lsn, min(max(end, lsn + 1), self._end_lsn), f"{segment.path} does not have them")


class FindTime:
    """The first lsn whose time is at or after `ts_us`; the end of the log when there is none."""

    def __init__(
        self,
        files: Files,
        segments: list[SegmentFile],
        recent: list[Chunk],
        ts_us: int,
        end_lsn: int,
        next_lsn: int,
    ) -> None:
        self._files, self._segments, self._recent = files, segments, recent
        self._ts, self._end_lsn, self._next_lsn = ts_us, end_lsn, next_lsn

    def run(self) -> int:
        for segment in self._candidates():
            places = segment.chunk_places(self._files)
            # The chunk before the first that begins at or after the time may still end after it.
            at = max(0, bisect_left(places, self._ts, key=lambda p: p.base_ts) - 1)
            for place in places[at : at + 2]:
                lsn = self._in_chunk(segment, place)
                if lsn is not None and lsn < self._end_lsn:
                    return lsn
        for chunk in self._recent:
            if chunk.next_lsn > self._end_lsn and chunk.base_ts >= self._ts:
                return max(chunk.base_lsn, self._end_lsn)
        return self._next_lsn

    def _candidates(self) -> list[SegmentFile]:
        """The last segment that begins before the time, and all behind it."""
        low, high = 0, len(self._segments)
        while low < high:
            middle = (low + high) // 2
            places = self._segments[middle].chunk_places(self._files)
            if not places or places[0].base_ts < self._ts:
                low = middle + 1
            else:
                high = middle
        return self._segments[max(0, low - 1) :] if low else self._segments

    def _in_chunk(self, segment: SegmentFile, place: Place) -> int | None:
        if place.base_ts >= self._ts:
            return place.base_lsn
        rows = read_rows(self._files, segment, place)
        row = kernel.first_at_time(rows, self._ts - place.base_ts)
        return place.base_lsn + row if row < place.count else None


class FindOffset:
    """The lsn of a topic's offset, or of the next one that is kept; the end of the log when there is none."""

    def __init__(
        self, files: Files, segments: list[SegmentFile], recent: list[Chunk], topic_id: int | None, offset: int,
        end_lsn: int, next_lsn: int,
    ) -> None:  # fmt: skip
        self._files, self._segments, self._recent = files, segments, recent
        self._topic_id, self._offset = topic_id, offset
        self._end_lsn, self._next_lsn = end_lsn, next_lsn

    def run(self) -> int:
        if self._topic_id is None:
            return self._next_lsn
        for segment in self._segments:
            if segment.end_lsn is not None:
                row = segment.load(self._files).row_of(self._topic_id, self._offset)
                if row is not None:
                    return segment.base_lsn + row
                continue
            for place in segment.chunk_places(self._files):
                row = kernel.first_of_topic(
                    read_rows(self._files, segment, place), self._topic_id, self._offset
                )
                if row >= 0:
                    return place.base_lsn + int(row)
        for chunk in self._recent:
            if chunk.next_lsn > self._end_lsn:
                row = kernel.first_of_topic(chunk.rows, self._topic_id, self._offset)
                if row >= 0:
                    return max(chunk.base_lsn + int(row), self._end_lsn)
        return self._next_lsn


def read_rows(files: Files, segment: SegmentFile, place: Place) -> Any:
    handle = files.open(segment.path)
    try:
        return files.read(handle, place.position + HEADER_BYTES, 32 * place.count)
    finally:
        files.close(handle)
