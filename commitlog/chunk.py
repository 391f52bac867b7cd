"""A chunk: consecutive records of one partition, in memory as on disk. docs/reference/log-format.md, "Chunk".

The document describes the bytes of a header; `HEADER` is the same layout for `struct`."""
# compiled: hot

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from commitlog.checksum import crc32
from commitlog.row_layout import ROW_BYTES

if sys.byteorder != "little":
    raise ImportError("rumq's log is little-endian, as its rows are read in place: this machine is big-endian")

MAGIC = int.from_bytes(b"RQC1", "little")
VERSION = 1
DATA, MARK, SEAL, CTRL = 1, 2, 3, 4
HEADER_BYTES = 128
ALIGN = 64
SYNC_ALIGN = 4096
HEADER = struct.Struct("<IBBHQQIIIIQQIIIIIIIIHBBI28s")
FLAG_QOS, FLAG_V5, FLAG_EXPIRY, FLAG_RETAIN, FLAG_TOPICS, FLAG_UNIFORM = 1, 2, 4, 8, 16, 32
TOPICS, PUBLISHERS, TAGS, SOURCES = 1, 2, 3, 4
TOPIC_ITEM, PUBLISHER_ITEM = struct.Struct("<IQH"), struct.Struct("<IH")
ITEMS_MAX = 0xFFFF
EPOCH_MAX = 1 << 31  # starts of one data directory
NUMBER_MAX = 1 << 62  # no lsn and no time is as high: a higher one is damage


Buffer = bytes | bytearray | memoryview


class Chunk:
    """Records base_lsn..next_lsn of a partition. rows: 32 bytes each; frames: the packets, one behind the other.

    flags: docs/reference/log-format.md, "Chunk"
    tags: 8 bytes each, (row u32, packet id u32), of inbound QoS 2 messages
    sources: 16 bytes each, (source u64, sequence u64): up to which forwarded record of each source the log has, with it
    routes: of its rows, by the router (epoch, distinct routes, row -> route); blobs: group -> its bytes, by the fan-out
    traces: of its records that are traced, by the shard; None: none is
    """

    __slots__ = (
        "base_lsn", "base_ts", "blobs", "count", "flags", "frames", "next_lsn", "publishers", "routes", "rows",
        "sources", "tags", "traces",
    )  # fmt: skip

    def __init__(
        self, base_lsn: int, count: int, base_ts: int, flags: int, rows: Buffer, frames: Buffer, tags: bytes = b"",
        sources: bytes = b"",
    ) -> None:  # fmt: skip
        self.set(base_lsn, count, base_ts, flags, rows, frames, tags, sources)

    def set(
        self, base_lsn: int, count: int, base_ts: int, flags: int, rows: Buffer, frames: Buffer, tags: bytes,
        sources: bytes,
    ) -> None:  # fmt: skip
        """Once, of one that `__new__` has made: compiled callers need no object for a number."""
        self.base_lsn = base_lsn
        self.count = count
        self.next_lsn = base_lsn + count
        self.base_ts = base_ts
        self.flags = flags
        self.rows = rows
        self.frames = frames
        self.tags = tags
        self.sources = sources
        self.routes: tuple[int, list[int], memoryview | None] | None = None
        self.blobs: dict[Any, Any] | None = None
        self.publishers: dict[int, bytes] | None = None
        self.traces: Any = None


class Gap(NamedTuple):
    """Records that should be there and cannot be read: damage, reported with its exact range."""

    base_lsn: int
    next_lsn: int
    why: str


class Header(NamedTuple):
    """A chunk's header on disk."""

    kind: int
    flags: int
    salt: int
    base_lsn: int
    count: int  # type: ignore[assignment]  # records; hides tuple.count
    frames_len: int
    aux_len: int
    total_len: int
    base_ts: int
    durable_lsn: int
    max_ts_delta: int
    epoch: int
    chain: int
    rows_crc: int
    frames_crc: int
    aux_crc: int
    crc: int

    @property
    def next_lsn(self) -> int:
        return self.base_lsn + self.count

    @property
    def body_len(self) -> int:
        return ROW_BYTES * self.count + self.frames_len + self.aux_len


def padded(size: int, align: int) -> int:
    return (size + align - 1) // align * align


def encode_header(
    kind: int, flags: int, salt: int, base_lsn: int, count: int, rows: Buffer, frames: Buffer, aux: bytes,
    total_len: int, base_ts: int, durable_lsn: int, max_ts_delta: int, epoch: int, chain: int,
    topic_low: int, topic_high: int, generation: int,
) -> tuple[bytes, int]:  # fmt: skip
    """The 128 bytes of a header, and its own CRC, which the next chunk's header repeats."""
    raw = HEADER.pack(
        MAGIC, VERSION, kind, flags, salt, base_lsn, count, len(frames), len(aux), total_len, base_ts, durable_lsn,
        max_ts_delta, epoch, chain, crc32(rows), crc32(frames), crc32(aux), topic_low, topic_high, ROW_BYTES, 1, 6,
        generation, bytes(28),
    )  # fmt: skip
    crc = crc32(raw)
    return raw + crc.to_bytes(4, "little"), crc


def maybe_header(raw: bytes, salt: int) -> Header | None:
    """The header in these 128 bytes; None when its CRC or its segment's salt differ."""
    if len(raw) < HEADER_BYTES or raw[:4] != b"RQC1":
        return None
    crc = int.from_bytes(raw[124:128], "little")
    if crc32(raw[:124]) != crc:
        return None
    f = HEADER.unpack_from(raw)
    if f[1] != VERSION or f[4] != salt or f[20] != ROW_BYTES:
        return None
    if f[5] | f[10] | f[11] >= NUMBER_MAX or f[13] >= EPOCH_MAX:
        return None
    header = Header(
        f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9], f[10], f[11], f[12], f[13], f[14], f[15], f[16], f[17], crc
    )
    if header.total_len < HEADER_BYTES + header.body_len or header.total_len % ALIGN:
        return None
    return header


def split_body(header: Header, body: bytes | memoryview) -> tuple[memoryview, memoryview, memoryview]:
    """Rows, frames and aux of a chunk's body."""
    view = memoryview(body)
    rows_end = ROW_BYTES * header.count
    frames_end = rows_end + header.frames_len
    return view[:rows_end], view[rows_end:frames_end], view[frames_end : frames_end + header.aux_len]


def encode_aux(
    topics: list[tuple[int, int, bytes]],
    publishers: list[tuple[int, bytes]],
    tags: bytes,
    sources: bytes = b"",
) -> bytes:
    """topics: (topic id, first offset, name); publishers: (number, client id); tags: 8, sources: 16 bytes each."""
    packed = []
    for at in range(0, len(topics), ITEMS_MAX):
        some = topics[at : at + ITEMS_MAX]
        items = b"".join(struct.pack("<IQH", i, offset, len(name)) + name for i, offset, name in some)
        packed.append((len(some), items))
    return encode_packed(packed, publishers, tags, sources)


def encode_packed(
    topics: list[tuple[int, bytes]], publishers: list[tuple[int, bytes]], tags: bytes, sources: bytes = b""
) -> bytes:
    """topics: number of items and items of each entry; the others as for `encode_aux`."""
    out = bytearray()
    for count, items in topics:
        out += entry_head(TOPICS, count, items) + items
    for at in range(0, len(publishers), ITEMS_MAX):
        people = publishers[at : at + ITEMS_MAX]
        items = b"".join(struct.pack("<IH", number, len(name)) + name for number, name in people)
        out += entry_head(PUBLISHERS, len(people), items) + items
    for at in range(0, len(tags), 8 * ITEMS_MAX):
        items = tags[at : at + 8 * ITEMS_MAX]
        out += entry_head(TAGS, len(items) // 8, items) + items
    if sources:
        out += entry_head(SOURCES, len(sources) // 16, sources) + sources
    return bytes(out)


def entry_head(kind: int, count: int, items: bytes) -> bytes:
    return struct.pack("<BBHI", kind, 0, count, len(items))


class Aux(NamedTuple):
    topics: list[tuple[int, int, bytes]]
    publishers: list[tuple[int, bytes]]
    tags: bytes


def entries(aux: bytes | memoryview) -> Iterator[tuple[int, bytes | memoryview]]:
    """Kind and items of each entry."""
    at = 0
    while at + 8 <= len(aux):
        kind, _, _, size = struct.unpack_from("<BBHI", aux, at)
        at += 8
        yield kind, aux[at : at + size]
        at += size


def tags_of(aux: bytes | memoryview) -> bytes:
    """The QoS 2 tags alone, without decoding topics, which may be many."""
    return b"".join(bytes(items[: len(items) // 8 * 8]) for kind, items in entries(aux) if kind == TAGS)


def sources_of(aux: bytes | memoryview) -> bytes:
    """16 bytes each, as `Chunk.sources`."""
    return b"".join(bytes(items[: len(items) // 16 * 16]) for kind, items in entries(aux) if kind == SOURCES)


def last_of_each(sources: bytes) -> bytes:
    """Only the last sequence of each source: it includes those before."""
    if len(sources) <= 16:
        return sources
    last = dict(struct.iter_unpack("<QQ", sources))
    return b"".join(struct.pack("<QQ", *item) for item in last.items())


def decode_aux(aux: bytes | memoryview) -> Aux:
    """The inverse of `encode_aux`; the CRC has been checked. Unknown kinds, and incomplete items, are left out."""
    found = Aux([], [], b"")
    tags = b""
    for kind, part in entries(aux):
        items = bytes(part)
        if kind == TAGS:
            tags += items[: len(items) // 8 * 8]
        elif kind == TOPICS:
            found.topics.extend((number, offset, name) for (number, offset, _), name in named(TOPIC_ITEM, items))
        elif kind == PUBLISHERS:
            found.publishers.extend((number, name) for (number, _), name in named(PUBLISHER_ITEM, items))
    return found._replace(tags=tags)


def named(layout: struct.Struct, items: bytes) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """Numbers and name of each item: the last number is the length of the name that follows."""
    at = 0
    while at + layout.size <= len(items):
        numbers = layout.unpack_from(items, at)
        at += layout.size
        yield numbers, items[at : at + numbers[-1]]
        at += numbers[-1]
