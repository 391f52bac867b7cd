"""The bytes of a chunk, as they are written to a segment. docs/reference/log-format.md, "Chunk".

Chunks of memory that are written together become one, in a page-aligned buffer. Knows no file."""
# compiled: hot

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import NamedTuple

from commitlog.chunk import (
    DATA,
    FLAG_TOPICS,
    HEADER_BYTES,
    ITEMS_MAX,
    SYNC_ALIGN,
    Buffer,
    Chunk,
    encode_header,
    encode_packed,
    last_of_each,
    padded,
)
from commitlog.format.chunk_position import ChunkPosition
from commitlog.kernels import rows as kernel
from commitlog.kernels import small_chunk
from commitlog.kernels import topics as topics_kernel
from commitlog.names.publisher_names import PublisherNames
from commitlog.row_layout import PUBLISHER_WORD, ROW_BYTES

MERGED_BYTES_MAX = 1 << 20
APART_US_MAX = 3_000_000_000  # a ts_delta is a u32 of µs
BUFFER_BYTES = 1 << 21
BUFFER_KEPT_MAX = 1 << 24
SMALL_BYTES = 20_480
SMALL_BODY_MAX = 16_384  # rows and frames of a small chunk
FLAGS_WORD, COUNT_WORD, LATE_WORD, CRC_WORD = 1, 6, 14, 31  # u32 of a header


class NumberedNames(NamedTuple):
    """The partition's dictionaries: number -> name. publishers: those of records in memory are in it"""

    topics: list[bytes]
    publishers: PublisherNames


class LaidOut:
    """A chunk of records. data: in the layout's buffer, until the next one is laid out; rows: its rows

    flags: of the chunk; late: its greatest ts_delta, µs; publishers: those that the segment had not named"""

    __slots__ = ("data", "flags", "late", "publishers", "records", "rows")

    def __init__(
        self, data: memoryview, rows: memoryview, records: int, flags: int, late: int,
        publishers: list[tuple[int, bytes]],
    ) -> None:  # fmt: skip
        self.data, self.rows, self.records = data, rows, records
        self.flags, self.late, self.publishers = flags, late, publishers


class ChunkLayout:
    """The chunks of one segment after the other. Each header repeats the CRC of the one before: the chain."""

    def __init__(self, names: NumberedNames, generation: int, epoch: int) -> None:
        self._names, self._generation, self._epoch = names, generation, epoch
        self._buffer = mmap(-1, BUFFER_BYTES, MAP_PRIVATE | MAP_ANONYMOUS)
        # One small chunk, with zeros behind it: never resized.
        self.small_bytes = bytearray(SMALL_BYTES)
        self._joined = bytearray(SMALL_BODY_MAX)  # rows and frames of several chunks, which it is made of
        self._salt = self._chain = 0
        self._seen_topics = bytearray()
        self._seen_publishers = bytearray()
        self._told_topics: list[tuple[int, bytes]] = []  # as entries of aux
        self._told_publishers: list[tuple[int, bytes]] = []

    def begin_segment(self, salt: int) -> None:
        self._salt, self._chain = salt, 0
        self._seen_topics = bytearray(len(self._names.topics) + 1024)
        self._seen_publishers = bytearray(self._names.publishers.next_number + 1024)
        self._seen_publishers[0] = 1  # nobody: it has no name
        self._told_topics, self._told_publishers = [], []

    def bare(self, kind: int, lsn: int, now_us: int, durable_lsn: int, total: int) -> bytes:
        """A chunk without records, of `total` bytes. kind: MARK or SEAL"""
        raw, self._chain = encode_header(
            kind, 0, self._salt, lsn, 0, b"", b"", b"", total, now_us, durable_lsn, 0, self._epoch, self._chain,
            0, 0, self._generation,
        )  # fmt: skip
        return raw + bytes(total - HEADER_BYTES)

    def small(self, chunks: list[Chunk], durable_lsn: int, align: int, ahead: int = 0) -> int:
        """Lay out one chunk of few records that name nothing new, as `data` would, in `small_bytes`.

        returns: its length; 0: it is none such, and nothing has changed"""
        if self._told_topics or self._told_publishers:
            return 0
        rows_len = frames_len = 0
        for chunk in chunks:
            if chunk.tags or chunk.sources:
                return 0
            rows_len += len(chunk.rows)
            frames_len += len(chunk.frames)
        if rows_len + frames_len > SMALL_BODY_MAX:
            return 0
        first = chunks[0]
        rows, frames, flags = first.rows, first.frames, first.flags
        if len(chunks) > 1:
            flags = small_chunk.join(chunks, self._joined, rows_len)
            joined = memoryview(self._joined)
            rows, frames = joined[:rows_len], joined[rows_len : rows_len + frames_len]
        total: int = small_chunk.encode(
            self.small_bytes, rows, frames, self._seen_topics, self._seen_publishers, flags, self._salt,
            first.base_lsn, first.base_ts, durable_lsn, self._epoch, self._chain, self._generation, align, ahead,
        )  # fmt: skip
        if total:
            self._chain = small_chunk.header_word(self.small_bytes, CRC_WORD)
        return total

    def place_small(self, place: ChunkPosition, position: int, first: Chunk, size: int) -> None:
        """Have `place` tell of the small chunk. first: its first records, as they are in memory"""
        data = self.small_bytes
        place.set(
            first.base_lsn, position, first.base_ts, small_chunk.header_word(data, COUNT_WORD), size,
            small_chunk.header_word(data, FLAGS_WORD) >> 16, small_chunk.header_word(data, LATE_WORD),
        )  # fmt: skip

    def small_rows(self) -> memoryview:
        """Of the small chunk, if it is made of several."""
        return memoryview(self.small_bytes)[
            HEADER_BYTES : HEADER_BYTES + ROW_BYTES * small_chunk.header_word(self.small_bytes, COUNT_WORD)
        ]

    def data(self, chunks: list[Chunk], durable_lsn: int, align: int, ahead: int = 0) -> LaidOut:
        """One chunk of the records of all these. align, ahead: it ends at a multiple of `align` if it begins `ahead`
        bytes behind one"""
        first = chunks[0]
        rows_len = sum([len(chunk.rows) for chunk in chunks])
        frames_len = sum([len(chunk.frames) for chunk in chunks])
        buffer = self._room(HEADER_BYTES + rows_len + frames_len)
        rows_end = HEADER_BYTES + rows_len
        rows = memoryview(buffer)[HEADER_BYTES:rows_end]
        flags, tags = kernel.lay_out(chunks, buffer, rows_end)
        low, high, late = kernel.bounds(rows)
        topics = self._new_topics(rows)
        publishers = self._new_publishers(rows)
        sources = last_of_each(b"".join([chunk.sources for chunk in chunks]))
        # Each name is in two chunks: none is lost with the chunk that used it first.
        aux = encode_packed(self._told_topics + topics, self._told_publishers + publishers, tags, sources)
        self._told_topics, self._told_publishers = topics, publishers
        if topics:
            flags |= FLAG_TOPICS
        count = rows_len // ROW_BYTES
        size = rows_end + frames_len + len(aux)
        total = padded(ahead + size, align) - ahead
        raw, self._chain = encode_header(
            DATA, flags, self._salt, first.base_lsn, count, rows, memoryview(buffer)[rows_end : rows_end + frames_len],
            aux, total, first.base_ts, durable_lsn, late, self._epoch, self._chain, low, high, self._generation,
        )  # fmt: skip
        rows.release()
        buffer = self._room(total)
        buffer[:HEADER_BYTES] = raw
        buffer[size - len(aux) : size] = aux
        buffer[size:total] = bytes(total - size)
        if len(buffer) > BUFFER_KEPT_MAX:
            self._buffer = mmap(-1, BUFFER_BYTES, MAP_PRIVATE | MAP_ANONYMOUS)  # this one lives as long as the chunk
        data = memoryview(buffer)[:total]
        return LaidOut(data, data[HEADER_BYTES:rows_end], count, flags, late, publishers)

    def _room(self, size: int) -> mmap:
        """The buffer, page aligned, with at least `size` bytes; keeps what is in it."""
        if len(self._buffer) < size:
            larger = mmap(-1, padded(size + size // 4, SYNC_ALIGN), MAP_PRIVATE | MAP_ANONYMOUS)
            larger[: len(self._buffer)] = self._buffer[:]
            self._buffer = larger
        return self._buffer

    def _new_topics(self, rows: Buffer) -> list[tuple[int, bytes]]:
        names = self._names.topics
        grow(self._seen_topics, len(names))
        found: list[tuple[int, bytes]] = topics_kernel.told(rows, self._seen_topics, names, ITEMS_MAX)
        return found

    def _new_publishers(self, rows: Buffer) -> list[tuple[int, bytes]]:
        names = self._names.publishers
        grow(self._seen_publishers, names.next_number)
        found = kernel.first_seen(rows, PUBLISHER_WORD, self._seen_publishers)
        return [(number, names[number]) for number, _ in found if number]


def grow(seen: bytearray, wanted: int) -> None:
    if len(seen) < wanted:
        seen.extend(bytes(wanted - len(seen) + 1024))


def are_one_piece(chunks: list[Chunk]) -> bool:
    """Whether these, two at least, can be one chunk."""
    size, bytes_max, last_us = 0, MERGED_BYTES_MAX, chunks[0].base_ts + APART_US_MAX
    for chunk in chunks:
        size += len(chunk.frames) + len(chunk.rows)
        if size > bytes_max or chunk.base_ts > last_us:
            return False
    return True


def pieced(chunks: list[Chunk], bytes_max: int = MERGED_BYTES_MAX) -> list[list[Chunk]]:
    """Consecutive chunks, grouped into those that can be one chunk of up to `bytes_max`."""
    pieces: list[list[Chunk]] = []
    size = bytes_max
    for chunk in chunks:
        more = len(chunk.frames) + len(chunk.rows)
        if size + more > bytes_max or chunk.base_ts - pieces[-1][0].base_ts > APART_US_MAX:
            pieces.append([])
            size = 0
        pieces[-1].append(chunk)
        size += more
    return pieces
