"""The packed file of a segment while it is written: consecutive chunks as one, each piece read back and compared.

It keeps every record's lsn, topic offset, time, publisher, flags and frame, the aux entries, and the durable marks.
docs/reference/log-format.md, "Packing"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from commitlog.chunk import ALIGN, HEADER_BYTES, SEAL, Chunk, Header, last_of_each, padded
from commitlog.disk.files import Files
from commitlog.errors import Damaged
from commitlog.format.chunk_layout import APART_US_MAX, ChunkLayout, NumberedNames
from commitlog.format.chunk_position import ChunkPosition
from commitlog.format.segment import SegmentHeader, chunk_in, encode_segment_header
from commitlog.index.index import read_segment
from commitlog.index.index_builder import Index
from commitlog.names.publisher_names import PublisherNames
from commitlog.names.topic_table import topic_table
from commitlog.row_layout import FRAME_WORD, ROW_WORDS, TS_WORD

PIECE_BYTES = 1 << 16  # of rows and frames: some hundred lone messages, laid out in a millisecond
SAME_WORDS = tuple(word for word in range(ROW_WORDS) if word not in (FRAME_WORD, TS_WORD))


class NotPackable(Exception):
    """A segment is not as its writer leaves one: it stays as it is."""


@dataclass(frozen=True, slots=True)
class PackedSegment:
    """A packed file that is complete and synced. path: where it is now; stop: its length; end_lsn: of its records"""

    path: str
    salt: int
    stop: int
    end_lsn: int
    index: Index


class PackedFile:
    """Created at once. index: of the segment, whose names it uses. segment: set by `finish`

    Every method may raise OSError, and NotPackable"""

    def __init__(self, files: Files, path: str, header: SegmentHeader, index: Index) -> None:
        self._files, self._path, self._salt, self._index = files, path, header.salt, index
        self.segment: PackedSegment | None = None
        self._layout = ChunkLayout(names_of(index), header.generation, header.epoch)
        self._layout.begin_segment(header.salt)
        self._waiting: list[Chunk] = []
        self._bytes = self._durable = self._last_ts = 0
        self._reached = header.base_lsn
        self._handle: int | None = files.create(path)
        opening = encode_segment_header(header)
        files.write(self._handle, 0, [opening])
        self._position = len(opening)

    def add(self, header: Header, chunk: Chunk | None) -> bool:
        """The segment's next chunk; None: one without records. Returns whether a piece was written."""
        has_written = False
        if chunk is not None:
            if chunk.base_lsn != self._reached:
                raise NotPackable
            size = len(chunk.rows) + len(chunk.frames)
            waiting = self._waiting
            last_ts = chunk.base_ts + header.max_ts_delta
            if waiting and (self._bytes + size > PIECE_BYTES or last_ts - waiting[0].base_ts > APART_US_MAX):
                self._write_piece()
                has_written = True
            self._waiting.append(chunk)
            self._bytes += size
            self._reached = chunk.next_lsn
        self._durable = max(self._durable, header.durable_lsn)
        self._last_ts = max(self._last_ts, header.base_ts)
        return has_written

    def finish(self, end_lsn: int) -> Iterator[bool]:
        """Write the rest, sync, and compare the index, in steps."""
        assert self._handle is not None
        if self._reached != end_lsn:
            raise NotPackable
        if self._waiting:
            self._write_piece()
            yield False
        seal = self._layout.bare(SEAL, end_lsn, self._last_ts, self._durable, padded(HEADER_BYTES, ALIGN))
        self._files.write(self._handle, self._position, [seal])
        self._position += len(seal)
        self._files.sync(self._handle)
        yield False
        index = read_segment(self._files, self._path, self._position)
        if not has_same_rows(index, self._index):
            raise Damaged(self._path, "a packed segment has other topics or rows than the segment: it is not used")
        self.segment = PackedSegment(self._path, self._salt, self._position, end_lsn, index)

    def close(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            self._files.close(handle)

    def _write_piece(self) -> None:
        assert self._handle is not None
        chunks, self._waiting, self._bytes = self._waiting, [], 0
        laid = self._layout.data(chunks, self._durable, ALIGN)
        first = chunks[0]
        place = ChunkPosition(
            first.base_lsn, self._position, first.base_ts, laid.records, len(laid.data), laid.flags, laid.late
        )
        with laid.data, laid.rows:
            self._files.write(self._handle, self._position, [laid.data])
        raw = self._files.read(self._handle, self._position, place.total_len)
        found = chunk_in(raw, self._path, self._salt, place)
        if not isinstance(found, Chunk) or not has_same_records(found, chunks):
            raise Damaged(self._path, "a packed chunk has other records than its segment: it is not used")
        self._position += place.total_len


def names_of(index: Index) -> NumberedNames:
    topics = [b""] * (1 + max(index.names, default=0))
    for number, name in index.names.items():
        topics[number] = name
    publishers = index.publishers
    return NumberedNames(topics, PublisherNames(publishers, 1 + max(publishers, default=0), len(publishers)))


def has_same_records(packed: Chunk, chunks: list[Chunk]) -> bool:
    """Whether a chunk has the records of consecutive others. Cost: a copy of them"""
    rows = b"".join([chunk.rows for chunk in chunks])
    if packed.base_lsn != chunks[0].base_lsn or len(packed.rows) != len(rows):
        return False
    if packed.frames != b"".join([chunk.frames for chunk in chunks]):
        return False
    old, new = memoryview(rows).cast("I"), memoryview(packed.rows).cast("B").cast("I")
    if any(old[word::ROW_WORDS].tolist() != new[word::ROW_WORDS].tolist() for word in SAME_WORDS):
        return False
    frames_at: list[int] = []
    times: list[int] = []
    tags = bytearray()
    start = first = 0
    for chunk in chunks:
        words = memoryview(chunk.rows).cast("B").cast("I")
        later = chunk.base_ts - packed.base_ts
        frames_at += [at + start for at in words[FRAME_WORD::ROW_WORDS]]
        times += [at + later for at in words[TS_WORD::ROW_WORDS]]
        for at in range(0, len(chunk.tags), 8):
            row = first + int.from_bytes(chunk.tags[at : at + 4], "little")
            tags += row.to_bytes(4, "little") + chunk.tags[at + 4 : at + 8]
        start += len(chunk.frames)
        first += chunk.count
    sources = last_of_each(b"".join([chunk.sources for chunk in chunks]))
    is_same = frames_at == new[FRAME_WORD::ROW_WORDS].tolist() and times == new[TS_WORD::ROW_WORDS].tolist()
    return is_same and packed.tags == tags and packed.sources == sources


def has_same_rows(packed: Index, index: Index) -> bool:
    """Whether two indexes have the same topics, rows and names; their chunks may differ."""
    return (
        bytes(topic_table(packed.topics).packed) == bytes(topic_table(index.topics).packed)
        and packed.rows == index.rows
        and packed.names == index.names
        and packed.publishers == index.publishers
    )
