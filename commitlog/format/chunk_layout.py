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
from commitlog.kernels import rows as kernel
from commitlog.kernels import small_chunk
from commitlog.kernels import topics as topics_kernel
from commitlog.names.publisher_names import PublisherNames
from commitlog.row_layout import PUBLISHER_WORD, ROW_BYTES

MERGED_BYTES_MAX = 1 << 20
APART_US_MAX = 3_000_000_000  # a ts_delta is a u32 of µs
BUFFER_BYTES = 1 << 21
BUFFER_KEPT_MAX = 1 << 24
SMALL_BYTES = 12_288
LATE_WORD, CRC_WORD = 14, 31  # u32 of a header


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

    def small(self, chunk: Chunk, durable_lsn: int, align: int, ahead: int = 0) -> int:
        """Lay out one chunk of few records that names nothing new, as `data` would, in `small_bytes`.

        returns: its length; 0: it is none such, and nothing has changed"""
        if chunk.tags or chunk.sources or self._told_topics or self._told_publishers:
            return 0
        total: int = small_chunk.encode(
            self.small_bytes, chunk.rows, chunk.frames, self._seen_topics, self._seen_publishers, chunk.flags,
            self._salt, chunk.base_lsn, chunk.base_ts, durable_lsn, self._epoch, self._chain, self._generation, align,
            ahead,
        )  # fmt: skip
        if total:
            self._chain = small_chunk.header_word(self.small_bytes, CRC_WORD)
        return total

    def small_late(self) -> int:
        """The greatest ts_delta of the small chunk, µs."""
        late: int = small_chunk.header_word(self.small_bytes, LATE_WORD)
        return late

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
