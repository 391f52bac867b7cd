"""The index of a finished segment: chunks by lsn and time, rows by topic. docs/reference/log-format.md, "Index".

A pure function of the segment up to its logical end: lost or damaged, it is rebuilt."""
# compiled: warm

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Container
from typing import NamedTuple

from commitlog.checksum import crc32
from commitlog.chunk import HEADER_BYTES, NUMBER_MAX, decode_aux, named
from commitlog.disk.files import Files, replace_file, whole_file
from commitlog.errors import Damaged
from commitlog.format.chunk_position import ChunkPosition
from commitlog.format.segment import (
    HOLDS_RECORDS,
    SEGMENT_HEADER_BYTES,
    chunks_through,
    opening,
    place_of,
    read_aux,
    salt_now,
)
from commitlog.index.index_builder import NUMBERS_MAX, Index, IndexBuilder
from commitlog.index.name_recovery import name_from_frames
from commitlog.kernels import topics as topics_kernel
from commitlog.names.topic_table import TOPIC, PackedTopicTable, TopicRows, topic_table
from commitlog.row_layout import ROW_BYTES

MAGIC = b"RUMQIDX1"
HEAD = struct.Struct("<8sQQ5I5III")
PLACE = struct.Struct("<QQQIIII")
NAME = struct.Struct("<IH")
ROWS_MAX = 1 << 32
NAMES_A_PIECE = 8192
Pieces = list[bytes | bytearray | memoryview]
ITEM_BYTES = (PLACE.size, TOPIC.size, 4, 1, 1)  # of each section


def read_segment(files: Files, path: str, stop: int | None = None, *, salt: int | None = None) -> Index:
    """Scan a segment up to byte `stop`. Reads rows and aux, not frames.

    salt: of the file whose byte that is; of another one, which has taken its place, all is read"""
    draft = IndexBuilder()
    handle = files.open(path)
    try:
        head = opening(files, handle, path).header
        reached = head.base_lsn
        if stop is None or (salt is not None and salt != head.salt):
            stop = files.size(path)
        for position, header in chunks_through(files, handle, head.salt, stop):
            aux = decode_aux(read_aux(files, handle, position, header))
            if header.base_lsn < reached or header.next_lsn > head.base_lsn + ROWS_MAX:
                continue  # whole, but not written by a writer
            if header.kind in HOLDS_RECORDS and header.count:
                reached = header.next_lsn
                rows = files.read(handle, position + HEADER_BYTES, ROW_BYTES * header.count)
                sound = rows if crc32(rows) == header.rows_crc else None
                draft.add(place_of(position, header), head.base_lsn, sound, aux.topics, aux.publishers)
            else:
                draft.name(aux.topics, aux.publishers)
        index = draft.finished()
        name_from_frames(files, handle, path, head.salt, index.places, index.topics.keys(), index.names)
    finally:
        files.close(handle)
    return index


# On disk


class Head(NamedTuple):
    end_lsn: int
    stop: int
    sizes: tuple[int, ...]
    crcs: tuple[int, ...]

    def section(self, number: int) -> tuple[int, int]:
        """Byte and length of a section."""
        return HEAD.size + sum(self.sizes[:number]), self.sizes[number]


def encode_index(index: Index, end_lsn: int, stop: int) -> bytes:
    return b"".join(index_pieces(index, end_lsn, stop))


def index_pieces(index: Index, end_lsn: int, stop: int) -> Pieces:
    """The bytes of an index, in pieces: of a million topics there are many."""
    topics = topic_table(index.topics).packed
    count = len(index.topics)
    names: Pieces
    if index.known is not None:
        # A piece at a time: a kernel lets no other thread run.
        names = [
            topics_kernel.names_of(topics, at, min(at + NAMES_A_PIECE, count), index.known)
            for at in range(0, count, NAMES_A_PIECE)
        ]
    else:
        names = [NAME.pack(i, len(name)) + name for i, name in sorted(index.names.items())]
    publishers = b"".join(NAME.pack(n, len(name)) + name for n, name in sorted(index.publishers.items()))
    sections: list[Pieces] = [
        [b"".join(PLACE.pack(*place) for place in index.places)],
        [topics],
        [memoryview(index.rows).cast("B")],
        names,
        [publishers],
    ]
    sizes = [sum(map(len, section)) for section in sections]
    crcs = [crc32_of(section) for section in sections]
    head = HEAD.pack(MAGIC, end_lsn, stop, *sizes, *crcs, 0, 0)[:-4]
    return [head + crc32(head).to_bytes(4, "little"), *(piece for section in sections for piece in section)]


def crc32_of(pieces: Pieces) -> int:
    crc = 0
    for piece in pieces:
        crc = crc32(piece, crc)
    return crc


def decode_head(raw: bytes, path: str, end_lsn: int, stop: int) -> Head:
    """Raises Damaged if it is no head, or has another end or stop than expected."""
    if len(raw) < HEAD.size or crc32(raw[: HEAD.size - 4]) != int.from_bytes(raw[HEAD.size - 4 : HEAD.size], "little"):
        raise Damaged(path, "the head of the index is damaged")
    f = HEAD.unpack_from(raw)
    if f[0] != MAGIC or f[1] != end_lsn or f[2] != stop:
        raise Damaged(path, "an index with another end or stop")
    return Head(f[1], f[2], f[3:8], f[8:13])


def decode_index(raw: bytes, path: str, end_lsn: int, stop: int) -> Index:
    """Raises Damaged: the index is then rebuilt from its segment."""
    head = decode_head(raw, path, end_lsn, stop)
    sections = []
    for number in range(5):
        at, size = head.section(number)
        sections.append(checked(raw[at : at + size], head, number, path))
    index = Index()
    index.places = places_in(sections[0], path)
    if not topics_kernel.in_order(sections[1]):
        raise Damaged(path, "the topics of the index are not in order")
    topics = index.topics = PackedTopicTable(sections[1])
    index.rows.frombytes(sections[2])
    index.names = {numbers[0]: name for numbers, name in named(NAME, sections[3])}
    index.publishers = {numbers[0]: name for numbers, name in named(NAME, sections[4])}
    if max(topics.highest, max(index.names, default=0), max(index.publishers, default=0)) >= NUMBERS_MAX:
        raise Damaged(path, "the index has numbers that were never given out")
    return index


def checked(section: bytes, head: Head, number: int, path: str) -> bytes:
    if len(section) % ITEM_BYTES[number]:
        raise Damaged(path, f"section {number} of the index is no list of its items")
    if len(section) != head.sizes[number] or crc32(section) != head.crcs[number]:
        raise Damaged(path, f"section {number} of the index is damaged")
    return section


def places_in(section: bytes, path: str) -> list[ChunkPosition]:
    places = [ChunkPosition(*fields) for fields in PLACE.iter_unpack(section)]
    if any(place.base_lsn | place.base_ts >= NUMBER_MAX for place in places):
        raise Damaged(path, "the index has numbers that were never given out")
    return places


def index_path(segment_path: str) -> str:
    return segment_path.removesuffix(".seg") + ".idx"


def maybe_index(files: Files, segment_path: str, end_lsn: int, stop: int) -> Index | None:
    """The index of a segment from its file; None when that is missing, damaged, or not of these contents."""
    path = index_path(segment_path)
    if not files.exists(path):
        return None
    try:
        return decode_index(whole_file(files, path), path, end_lsn, stop)
    except Damaged:
        return None


def load_places(files: Files, segment_path: str, end_lsn: int, stop: int) -> list[ChunkPosition]:
    """Positions of a segment's chunks: from its index file, or else by a scan."""
    places = maybe_places(files, segment_path, end_lsn, stop)
    if places is not None:
        return places
    handle = files.open(segment_path)
    try:
        head = opening(files, handle, segment_path).header
        return scan_places(files, handle, head.salt, head.base_lsn, stop)
    finally:
        files.close(handle)


def maybe_places(files: Files, segment_path: str, end_lsn: int, stop: int) -> list[ChunkPosition] | None:
    """Positions of a segment's chunks from its index file; None where that cannot tell."""
    path = index_path(segment_path)
    if files.exists(path):
        handle = files.open(path)
        try:
            head = decode_head(files.read(handle, 0, HEAD.size), path, end_lsn, stop)
            section = checked(files.read(handle, *head.section(0)), head, 0, path)
            return places_in(section, path)
        except Damaged:
            pass
        finally:
            files.close(handle)
    return None


def scan_places(files: Files, handle: int, salt: int, base_lsn: int, stop: int) -> list[ChunkPosition]:
    """Positions of a segment's chunks of records up to byte `stop`. Reads headers only: a reader waits for them."""
    places = []
    reached = base_lsn
    for position, header in chunks_through(files, handle, salt, stop):
        is_of_writer = header.base_lsn >= reached and header.next_lsn <= base_lsn + ROWS_MAX
        if is_of_writer and header.kind in HOLDS_RECORDS and header.count:
            reached = header.next_lsn
            places.append(place_of(position, header))
    return places


def load_publishers(
    files: Files,
    segment_path: str,
    salt: int,
    end_lsn: int,
    stop: int,
    start: int = SEGMENT_HEADER_BYTES,
    only: Container[int] | None = None,
) -> dict[int, bytes]:
    """The publishers of a segment: from its index file, or else by a scan of all chunks.

    start: only of chunks from this byte on; only: these numbers, None: all
    """
    path = index_path(segment_path)
    if files.exists(path):
        handle = files.open(path)
        try:
            head = decode_head(files.read(handle, 0, HEAD.size), path, end_lsn, stop)
            section = checked(files.read(handle, *head.section(4)), head, 4, path)
            return {n: name for (n, _), name in named(NAME, section) if only is None or n in only}
        except Damaged:
            pass
        finally:
            files.close(handle)
    found: dict[int, bytes] = {}
    handle = files.open(segment_path)
    try:
        now = salt_now(files, handle, segment_path, salt)
        if now != salt:  # it was packed
            salt, start, stop = now, SEGMENT_HEADER_BYTES, files.size(segment_path)
        for position, header in chunks_through(files, handle, salt, stop, start):
            if header.aux_len:
                told = decode_aux(read_aux(files, handle, position, header)).publishers
                found.update((n, name) for n, name in told if only is None or n in only)
    finally:
        files.close(handle)
    return found


def row_of(
    files: Files,
    segment_path: str,
    end_lsn: int,
    stop: int,
    topic_id: int,
    offset: int,
    *,
    salt: int,
    sound: bool = False,
) -> int | None:
    """Row (from the segment's base lsn) of a topic's offset, or of the next one kept; None: it has none.

    salt: of the segment
    sound: the checksum of its topics was found right before, so only some of them are read (a binary search)
    Right for a segment without damage.
    """
    path = index_path(segment_path)
    if files.exists(path):
        handle = files.open(path)
        try:
            head = decode_head(files.read(handle, 0, HEAD.size), path, end_lsn, stop)
            begin, size = head.section(1)
            if not sound:
                checked(files.read(handle, begin, size), head, 1, path)

            def topic(n: int) -> tuple[int, ...]:
                return TOPIC.unpack(files.read(handle, begin + n * TOPIC.size, TOPIC.size))

            numbers = range(size // TOPIC.size)
            at = bisect_left(numbers, topic_id, key=lambda n: topic(n)[0])
            if at == len(numbers):
                return None
            number, *fields, _ = topic(at)
            row = row_in(TopicRows(*fields), offset) if number == topic_id else None
            if row is None:
                return None
            return int.from_bytes(files.read(handle, head.section(2)[0] + 4 * row, 4), "little")
        except Damaged:
            pass
        finally:
            files.close(handle)
    index = read_segment(files, segment_path, stop, salt=salt)
    found = index.topics.get(topic_id)
    row = row_in(found, offset) if found is not None else None
    return None if row is None else index.rows[row]


def row_in(topic: TopicRows, offset: int) -> int | None:
    """Index in an index's rows of a topic's offset, or of the next one."""
    if offset >= topic.following:
        return None
    # If rows are lost the number is too high: callers check the row.
    return topic.start + min(max(0, offset - topic.first), topic.records - 1)


def write_index(files: Files, segment_path: str, index: Index, end_lsn: int, stop: int) -> None:
    """Put the index of a finished and synced segment beside it."""
    replace_file(files, index_path(segment_path), *index_pieces(index, end_lsn, stop))


def place_at(places: list[ChunkPosition], lsn: int) -> int:
    """Number of the chunk with `lsn`, or of the next one; len(places) if there is none."""
    return bisect_left(places, lsn + 1, key=lambda p: p.next_lsn)
