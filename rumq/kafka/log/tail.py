"""The newest chunks of a partition, as they are written to its last segment; kept in memory for those who follow it.

A chunk is shown when its records are committed: by a mark of a later chunk, or because the broker said so. Reads files,
blocks; one thread at a time. docs/reference/log-format.md, "Reading"."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from commitlog import Chunk
from commitlog.chunk import DATA, HEADER_BYTES, SEAL, maybe_header
from commitlog.disk.files import Files
from commitlog.format.segment import chunk_in, place_of, salt_now
from commitlog.index.segment_view import SegmentView
from commitlog.read.cold_reads import clipped

SMALL_BLOCK_BYTES, BLOCK_BYTES = 1 << 15, 1 << 18  # that are read in a short look, and at once in a long one
KEPT_BYTES_MAX = 8 << 20  # of one partition
AHEAD_BYTES_MAX = 32 << 20  # that one look reads; who is so far behind reads files


class PartitionTail:
    """end: every record below it is committed; written: the end of what the file has; is_ended: make another one of a
    newer view, as the segment has ended, or something is there that cannot be followed"""

    def __init__(self, files: Files, segment: SegmentView, end_lsn: int) -> None:
        """segment: the last one of a view; end_lsn: of the view"""
        self._files, self._path, self._salt = files, segment.path, segment.salt
        self._position = segment.logical_end
        self._chunks: list[Chunk] = []  # replaced where some are dropped, so that who reads keeps its own
        self._bytes = 0
        self._said = 0
        self._has_more = False  # chunks may follow those that were read last
        self.end = self.written = self.first = end_lsn
        self.is_ended = segment.finished

    def said(self, committed_lsn: int) -> bool:
        """What the broker says is committed. Returns whether more may be read."""
        self._said = max(self._said, committed_lsn)
        return self._commit()

    def look_shortly(self) -> bool:
        """Take a few chunks that were written just now, from the page cache. Returns whether that was all.

        raises: OSError"""
        handle = self._files.open(self._path)
        try:
            self._block(handle, SMALL_BLOCK_BYTES)
        finally:
            self._files.close(handle)
        self._commit()
        return not self._has_more

    def look(self) -> None:
        """Take all that was written since; may wait for a disk. raises: OSError"""
        left = AHEAD_BYTES_MAX
        handle = self._files.open(self._path)
        try:
            while left > 0 and not self.is_ended and (size := self._block(handle, BLOCK_BYTES)):
                left -= size
        finally:
            self._files.close(handle)
        self.is_ended |= left <= 0
        self._commit()

    def _block(self, handle: int, wanted: int) -> int:
        """How many bytes of whole chunks were taken."""
        data = self._files.read(handle, self._position, wanted)
        at = 0
        self._has_more = len(data) == wanted
        while at + HEADER_BYTES <= len(data):
            header = maybe_header(data[at : at + HEADER_BYTES], self._salt)
            if header is None:
                self._has_more = False
                break
            if at + header.total_len > len(data):
                if at or len(data) < wanted or wanted < BLOCK_BYTES:
                    break  # the rest is read next, or is yet to be written
                data = self._files.read(handle, self._position, header.total_len)
                if len(data) < header.total_len:
                    break
            if header.kind == DATA and header.count:
                # A copy: a chunk that is kept must not keep the block.
                found = chunk_in(
                    data[at : at + header.total_len],
                    self._path,
                    self._salt,
                    place_of(self._position + at, header),
                )
                if not isinstance(found, Chunk):
                    break  # it is being written
                if found.base_lsn != self.written:
                    self.is_ended = True
                    break
                self._keep(found)
            self._said = max(self._said, header.durable_lsn)
            self.is_ended |= header.kind == SEAL
            at += header.total_len
        if not at and not self.is_ended:  # nothing follows, or the file is another one
            self.is_ended = salt_now(self._files, handle, self._path, self._salt) != self._salt
        self._position += at
        return at

    def _keep(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)
        self._bytes += size_of(chunk)
        self.written = chunk.next_lsn
        if self._bytes > KEPT_BYTES_MAX:
            self._drop()

    def _drop(self) -> None:
        """The oldest half of what is committed."""
        dropped = 0
        for chunk in self._chunks:
            if self._bytes <= KEPT_BYTES_MAX // 2 or chunk.next_lsn > self.end:
                break
            self._bytes -= size_of(chunk)
            self.first = chunk.next_lsn
            dropped += 1
        self._chunks = self._chunks[dropped:]

    def _commit(self) -> bool:
        before = self.end
        self.end = max(before, min(self.written, self._said))
        return self.end > before

    def chunks(self, at: int, end: int) -> Iterator[Chunk]:
        """Committed records at..end; `at` is not below `first`. For any thread, beside a look."""
        chunks = self._chunks
        for number in range(max(0, bisect_right(chunks, at, key=base_of) - 1), len(chunks)):
            chunk = chunks[number]
            if chunk.base_lsn >= end:
                return
            if chunk.next_lsn > at:
                yield clipped(chunk, at, end)


def base_of(chunk: Chunk) -> int:
    return chunk.base_lsn


def size_of(chunk: Chunk) -> int:
    return len(chunk.rows) + len(chunk.frames)
