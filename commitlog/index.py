"""The index of a sealed segment: chunks by lsn and time, rows by topic. A pure function of the segment.

The layout is drawn in docs/log-format.md, "Index": a checked head, then chunk places, topics, row numbers by topic,
names and publishers, each section with a checksum of its own."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from typing import Any
from zlib import crc32

from commitlog.chunk import HEADER_BYTES, decode_aux
from commitlog.errors import Damaged
from commitlog.files import Files, replace_file
from commitlog.kernels import rows as kernel
from commitlog.segment import HOLDS_RECORDS, Place, read_aux, read_header, walk

MAGIC = b"RUMQIDX1"
HEAD = struct.Struct("<8sIIIIIIIIIIQI")
PLACE = struct.Struct("<QQQII")
TOPIC = struct.Struct("<IIQQ")


class Index:
    """places: every chunk; topics: id -> (first offset, count, start in `rows`); names; publishers."""

    __slots__ = ("names", "places", "publishers", "rows", "topics")

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.topics: dict[int, tuple[int, int, int]] = {}
        self.names: dict[int, bytes] = {}
        self.publishers: dict[int, bytes] = {}
        self.rows: array[int] = array("I")

    def row_of(self, topic_id: int, offset: int) -> int | None:
        """Row (from the segment's base lsn) of a topic's offset, or of the next one kept here; None: none is."""
        entry = self.topics.get(topic_id)
        if entry is None:
            return None
        first, count, start = entry
        at = max(0, offset - first)
        return self.rows[start + at] if at < count else None


def read_segment(files: Files, path: str, stop: int | None = None) -> tuple[Index, int]:
    """Look through a segment up to byte `stop`; returns its index and its end lsn. Reads rows and aux, not frames."""
    index = Index()
    handle = files.open(path)
    try:
        head = read_header(files, handle, path)
        end_lsn = head.base_lsn
        loaded: list[tuple[int, bytes]] = []
        first_offsets: dict[int, int] = {}
        for position, header in walk(
            files, handle, head.salt, 4096, files.size(path) if stop is None else stop
        ):
            if header.aux_len:
                aux = decode_aux(read_aux(files, handle, position, header))
                for number, offset, name in aux.topics:
                    index.names[number] = name
                    first_offsets.setdefault(number, offset)
                index.publishers.update(aux.publishers)
            if header.kind in HOLDS_RECORDS and header.count:
                place = Place(header.base_lsn, position, header.base_ts, header.count, header.total_len)
                index.places.append(place)
                rows = files.read(handle, position + HEADER_BYTES, 32 * header.count)
                if crc32(rows) == header.rows_crc:
                    loaded.append((header.base_lsn - head.base_lsn, kernel.topic_column(rows)))
                end_lsn = header.next_lsn
        fill_topics(index, loaded, first_offsets)
    finally:
        files.close(handle)
    return index, end_lsn


def fill_topics(index: Index, loaded: list[tuple[int, Any]], first_offsets: dict[int, int]) -> None:
    """Sort the rows by topic: count, then place."""
    size = max(index.names, default=-1) + 1
    counts = array("I", bytes(4 * size))
    for _, column in loaded:
        kernel.count_topics(column, counts)
    starts = array("I", bytes(4 * size))
    total = 0
    for topic_id in range(size):
        starts[topic_id] = total
        if counts[topic_id]:
            index.topics[topic_id] = (first_offsets.get(topic_id, 0), counts[topic_id], total)
        total += counts[topic_id]
    index.rows = array("I", bytes(4 * total))
    if total:
        for first_row, column in loaded:
            kernel.place_rows(column, first_row, starts, index.rows)


def encode_index(index: Index, end_lsn: int) -> bytes:
    places = b"".join(PLACE.pack(*place) for place in index.places)
    ids = sorted(index.names)
    topics = b"".join(
        TOPIC.pack(i, index.topics[i][1], index.topics[i][0], index.topics[i][2])
        for i in ids
        if i in index.topics
    )
    names = b"".join(struct.pack("<IH", i, len(index.names[i])) + index.names[i] for i in ids)
    publishers = b"".join(
        struct.pack("<IH", n, len(name)) + name for n, name in sorted(index.publishers.items())
    )
    sections = [places, topics, index.rows.tobytes(), names, publishers]
    sizes = [len(section) for section in sections]
    crcs = [crc32(section) for section in sections]
    head = HEAD.pack(MAGIC, *sizes, *crcs, end_lsn, 0)[:-4]
    return head + crc32(head).to_bytes(4, "little") + b"".join(sections)


def decode_index(raw: bytes, path: str) -> tuple[Index, int]:
    """Raises Damaged: it is then made again from its segment."""
    if len(raw) < HEAD.size:
        raise Damaged(path, "the index is too short")
    f = HEAD.unpack_from(raw)
    if f[0] != MAGIC or crc32(raw[: HEAD.size - 4]) != f[12]:
        raise Damaged(path, "the index head is damaged")
    sections, at = [], HEAD.size
    for size, crc in zip(f[1:6], f[6:11], strict=True):
        section = raw[at : at + size]
        if len(section) != size or crc32(section) != crc:
            raise Damaged(path, "a section of the index is damaged")
        sections.append(section)
        at += size
    index = Index()
    index.places = [Place(*fields) for fields in PLACE.iter_unpack(sections[0])]
    for topic_id, count, first, start in TOPIC.iter_unpack(sections[1]):
        index.topics[topic_id] = (first, count, start)
    index.rows.frombytes(sections[2])
    for section, into in ((sections[3], index.names), (sections[4], index.publishers)):
        at = 0
        while at < len(section):
            number, length = struct.unpack_from("<IH", section, at)
            into[number] = section[at + 6 : at + 6 + length]
            at += 6 + length
    return index, f[11]


def index_path(segment_path: str) -> str:
    return segment_path.removesuffix(".seg") + ".idx"


def load_index(files: Files, segment_path: str, stop: int | None = None) -> tuple[Index, int]:
    """The index of a sealed segment, from its file, or made from the segment when that is lost or damaged."""
    path = index_path(segment_path)
    if files.exists(path):
        handle = files.open(path)
        try:
            return decode_index(files.read(handle, 0, files.size(path)), path)
        except Damaged:
            pass
        finally:
            files.close(handle)
    return read_segment(files, segment_path, stop)


def rebuilt_index(files: Files, segment_path: str, end_lsn: int) -> bytes:
    """The index file that the segment alone gives."""
    return encode_index(read_segment(files, segment_path)[0], end_lsn)


class Draft:
    """What the writer of a segment gathers on its way, so that its index needs no second look at the file."""

    __slots__ = ("columns", "first_offsets", "index")

    def __init__(self) -> None:
        self.index = Index()
        self.columns: list[tuple[int, bytes]] = []
        self.first_offsets: dict[int, int] = {}

    def add(
        self, place: Place, first_row: int, column: bytes, topics: list[tuple[int, int, bytes]],
        publishers: list[tuple[int, bytes]],
    ) -> None:  # fmt: skip
        """Take in a chunk that was written. first_row: counted from the segment's start; column: its topic ids."""
        self.index.places.append(place)
        self.columns.append((first_row, column))
        for number, offset, name in topics:
            self.index.names[number] = name
            self.first_offsets[number] = offset
        self.index.publishers.update(publishers)

    def finished(self) -> Index:
        fill_topics(self.index, self.columns, self.first_offsets)
        return self.index


def write_index(files: Files, segment_path: str, index: Index, end_lsn: int) -> None:
    """Put the index of a sealed and synced segment beside it."""
    replace_file(files, index_path(segment_path), encode_index(index, end_lsn))


def place_at(places: list[Place], lsn: int) -> int:
    """Number of the chunk that holds `lsn`, or of the first behind it; len(places) when there is none."""
    at = bisect_left(places, lsn + 1, key=lambda p: p.base_lsn) - 1
    if at >= 0 and places[at].next_lsn > lsn:
        return at
    return at + 1
