"""Packing: a finished segment written anew, with the same records in fewer, larger chunks.

A message that came alone is a chunk of its own, and a page of the disk where groups are synced. The packed file is
written beside the segment in short steps, for a thread that may wait; `packed_replacement` puts it in place.
docs/reference/log-format.md, "Packing"."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from commitlog.chunk import ALIGN, HEADER_BYTES, SYNC_ALIGN, Chunk, Header, maybe_header
from commitlog.disk.files import Files, remove_if_possible
from commitlog.errors import Damaged
from commitlog.format.chunk_layout import APART_US_MAX
from commitlog.format.chunk_position import ChunkPosition
from commitlog.format.segment import PACKED, SEGMENT_HEADER_BYTES, SegmentHeader, chunk_in, place_of
from commitlog.index.index import load_places, maybe_index
from commitlog.index.segments import SegmentFile
from commitlog.row_layout import ROW_BYTES
from commitlog.write.packed_file import PIECE_BYTES, NotPackable, PackedFile, PackedSegment
from commitlog.write.packed_source import is_known, known_header

BLOCK_BYTES = 1 << 17  # that a step reads
SAVED_PART = 4  # a segment is packed if that frees one byte in so many


class SegmentPacking:
    """One segment, finished and indexed. After the last step, `packed` is None where it stays as it is.

    salt: of the packed file"""

    def __init__(self, files: Files, segment: SegmentFile, salt: int) -> None:
        self._files, self.segment, self._salt = files, segment, salt
        self.packed: PackedSegment | None = None
        self._header: SegmentHeader
        self._steps = self._work()

    def step(self) -> bool:
        """Read and write some more, for about a millisecond. Returns whether that was all.

        raises: OSError, and then it is over: the segment stays as it is, and nothing is left beside it"""
        try:
            return next(self._steps, True)
        except (NotPackable, FileNotFoundError):  # or retention removed it
            return True

    def abandon(self) -> None:
        """Leave nothing beside the segment; in place of further steps."""
        self._steps.close()
        self.discard()

    def discard(self) -> None:
        """Remove what was packed: it will not be used."""
        remove_if_possible(self._files, self.segment.path + PACKED)

    def _work(self) -> Generator[bool, None, None]:
        files, segment, end_lsn = self._files, self.segment, self.segment.end_lsn or 0
        places = load_places(files, segment.path, end_lsn, segment.logical_end)
        if len(places) < 2 or not is_enough(packed_bytes(places), segment.logical_end):
            return
        yield False
        index = maybe_index(files, segment.path, end_lsn, segment.logical_end)
        if index is None:
            raise NotPackable
        path = segment.path + PACKED
        discard(files, path)
        handle = files.open(segment.path)
        try:
            try:
                header = self._header = known_header(files, handle, segment.path)
            except Damaged:
                raise NotPackable from None
            packed = PackedFile(files, path, header._replace(salt=self._salt), index)
            try:
                for block in self._blocks(handle):
                    yield False
                    for head, chunk in block:
                        if packed.add(head, chunk):
                            yield False
                yield from packed.finish(end_lsn)
                if packed.segment is None or not is_enough(packed.segment.stop, segment.logical_end):
                    raise NotPackable
                self.packed = packed.segment
            finally:
                packed.close()
        except BaseException:
            if files.exists(path):
                remove_if_possible(files, path)
            raise
        finally:
            files.close(handle)

    def _blocks(self, handle: int) -> Iterator[list[tuple[Header, Chunk | None]]]:
        """The segment's chunks in their order, with their headers; None: it holds no records."""
        segment, position = self.segment, SEGMENT_HEADER_BYTES
        while position < segment.logical_end:
            block = memoryview(self._files.read(handle, position, BLOCK_BYTES))
            found, at = [], 0
            while position + at < segment.logical_end:
                header = maybe_header(bytes(block[at : at + HEADER_BYTES]), segment.salt)
                if header is None or at + header.total_len > len(block):
                    break
                found.append((header, self._chunk(header, block[at : at + header.total_len], position + at)))
                at += header.total_len
            if not at:
                header = maybe_header(bytes(block[:HEADER_BYTES]), segment.salt)
                if header is None:
                    raise NotPackable
                raw = memoryview(self._files.read(handle, position, header.total_len))
                found.append((header, self._chunk(header, raw, position)))
                at = header.total_len
            position += at
            yield found

    def _chunk(self, header: Header, raw: memoryview, position: int) -> Chunk | None:
        if not is_known(self._header, header, raw):
            raise NotPackable
        if not header.count:
            return None
        chunk = chunk_in(raw, self.segment.path, self.segment.salt, place_of(position, header))
        if not isinstance(chunk, Chunk):
            raise NotPackable  # damaged
        return chunk


def is_enough(after: int, before: int) -> bool:
    """Whether a packed file is so much smaller. Both in bytes"""
    return (before - after) * SAVED_PART >= before


def packed_bytes(places: list[ChunkPosition]) -> int:
    """What chunks would take when they are packed, about: what each is padded with is guessed by where it ends.

    A chunk of a packed file is what it would be again: a start does not pack it once more."""
    total, size, first_ts = SEGMENT_HEADER_BYTES + HEADER_BYTES, PIECE_BYTES, 0
    for place in places:
        is_page = (place.position + place.total_len) % SYNC_ALIGN == 0
        padding = (SYNC_ALIGN if is_page else ALIGN) // 2
        own = max(ROW_BYTES * place.count, place.total_len - HEADER_BYTES - padding)
        if size + own > PIECE_BYTES or place.last_ts - first_ts > APART_US_MAX:
            total += HEADER_BYTES + ALIGN // 2
            size, first_ts = 0, place.base_ts
        size += own
        total += own
    return total


def discard(files: Files, path: str) -> None:
    """Remove what an earlier attempt may have left. raises: OSError"""
    if files.exists(path):
        files.remove(path)
