"""One segment file: its header, and its chunks one by one. docs/reference/log-format.md, "Segment".

Reading only. Damage is reported, never repaired."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from commitlog.checksum import crc32
from commitlog.chunk import (
    ALIGN,
    CTRL,
    DATA,
    EPOCH_MAX,
    HEADER_BYTES,
    NUMBER_MAX,
    Chunk,
    Gap,
    Header,
    maybe_header,
    sources_of,
    split_body,
    tags_of,
)
from commitlog.disk.files import Files
from commitlog.errors import Damaged, FormatTooNew
from commitlog.format.chunk_position import ChunkPosition as ChunkPosition
from commitlog.kernels import rows as kernel
from commitlog.row_layout import ROW_BYTES

MAGIC = b"RUMQSEG1"
FORMAT_VERSION = 1
SEGMENT_HEADER_BYTES = 4096
LAYOUT = struct.Struct("<8sHHIIH64s16sQQQI16s")
PACKED = ".pack"  # behind the name of a packed file, until it is in place
REFILLED = ".fill"  # ... of a file that a leader sends in place of a copy's last segment
BESIDE = (PACKED, REFILLED)  # what a crash leaves of them is of no use
SALT_AT = 102  # of its header
PROBE_BYTES = 1 << 20
WALK_BYTES = 1 << 16
HOLDS_RECORDS = (DATA, CTRL)
NO_ID = bytes(16)


class SegmentHeader(NamedTuple):
    generation: int
    partition: int
    stream: str
    uuid: bytes
    salt: int
    base_lsn: int
    created_us: int
    epoch: int
    boot_id: bytes

    @property
    def order(self) -> tuple[int, int, int]:
        """Of two segments with common lsns, the one with the higher order was written later and has them."""
        return self.base_lsn, self.epoch, self.created_us


def place_of(position: int, header: Header) -> ChunkPosition:
    return ChunkPosition(
        header.base_lsn, position, header.base_ts, header.count, header.total_len, header.flags,
        header.max_ts_delta,
    )  # fmt: skip


def encode_segment_header(header: SegmentHeader) -> bytes:
    name = header.stream.encode()
    raw = LAYOUT.pack(
        MAGIC, FORMAT_VERSION, FORMAT_VERSION, header.generation, header.partition, len(name), name, header.uuid,
        header.salt, header.base_lsn, header.created_us, header.epoch, header.boot_id,
    )  # fmt: skip
    raw = raw.ljust(SEGMENT_HEADER_BYTES - 4, b"\0")
    return raw + crc32(raw).to_bytes(4, "little")


def decode_segment_header(raw: bytes, path: str) -> SegmentHeader:
    """Raises Damaged when the bytes are no header, FormatTooNew when only a later version can read the segment."""
    if len(raw) < SEGMENT_HEADER_BYTES or crc32(raw[:-4]) != int.from_bytes(raw[-4:], "little"):
        raise Damaged(path, "the segment header is damaged")
    f = LAYOUT.unpack_from(raw)
    if f[0] != MAGIC:
        raise Damaged(path, "not a segment")
    if f[2] > FORMAT_VERSION:
        raise FormatTooNew(
            path, f"{path} needs a reader of version {f[2]}, this is {FORMAT_VERSION}: use the rumq that wrote it"
        )
    if f[9] | f[10] >= NUMBER_MAX or f[11] >= EPOCH_MAX:
        raise Damaged(path, "the segment header has numbers that were never given out")
    try:
        stream = f[6][: f[5]].decode()
    except UnicodeDecodeError:
        raise Damaged(path, "the segment header names no stream") from None
    return SegmentHeader(f[3], f[4], stream, f[7], f[8], f[9], f[10], f[11], f[12])


def read_header(files: Files, handle: int, path: str) -> SegmentHeader:
    return decode_segment_header(files.read(handle, 0, SEGMENT_HEADER_BYTES), path)


class SegmentStart(NamedTuple):
    """Start of a segment. first_ts: of its first chunk, 0 if there is none; damage: fault of its header."""

    header: SegmentHeader
    first_ts: int
    damage: Damaged | None


def opening(files: Files, handle: int, path: str) -> SegmentStart:
    """The header of a segment; if it is damaged, rebuilt from the first chunk and the file's name.

    raises: Damaged if that fails, FormatTooNew
    """
    raw = files.read(handle, 0, SEGMENT_HEADER_BYTES + HEADER_BYTES)
    first = raw[SEGMENT_HEADER_BYTES:]
    try:
        header = decode_segment_header(raw[:SEGMENT_HEADER_BYTES], path)
    except Damaged as damage:
        salt = int.from_bytes(first[8:16], "little")
        chunk, name = maybe_header(first, salt), path.rpartition("/")[2]
        if chunk is None or not name[:20].isdigit() or chunk.base_lsn != int(name[:20]):
            raise
        generation = int.from_bytes(first[92:96], "little")
        header = SegmentHeader(generation, -1, "", NO_ID, salt, chunk.base_lsn, chunk.base_ts, chunk.epoch, NO_ID)
        return SegmentStart(header, chunk.base_ts, damage)
    chunk = maybe_header(first, header.salt)
    return SegmentStart(header, chunk.base_ts if chunk is not None else 0, None)


def salt_now(files: Files, handle: int, path: str, salt: int) -> int:
    """The salt of a segment's file; `salt`, by which it was known, unless it is clear that another one is there."""
    if files.read(handle, SALT_AT, 8) == salt.to_bytes(8, "little"):
        return salt
    try:
        return opening(files, handle, path).header.salt
    except Damaged:
        return salt


def walk(files: Files, handle: int, salt: int, start: int, stop: int) -> Iterator[tuple[int, Header]]:
    """(position, header) of each chunk from `start` on, up to the first invalid header; bodies are not checked."""
    buffer, at = b"", start
    position = start
    while position + HEADER_BYTES <= stop:
        if position + HEADER_BYTES > at + len(buffer) or position < at:
            buffer, at = files.read(handle, position, WALK_BYTES), position
        header = maybe_header(buffer[position - at : position - at + HEADER_BYTES], salt)
        if header is None or position + header.total_len > stop:
            return
        yield position, header
        position += header.total_len


def body_fault(header: Header, body: bytes | memoryview) -> str | None:
    """The fault of a chunk's body; None if it is valid."""
    if len(body) < header.body_len:
        return "it ends early"
    rows, frames, aux = split_body(header, body)
    parts = (
        (rows, header.rows_crc, "rows"),
        (frames, header.frames_crc, "frames"),
        (aux, header.aux_crc, "aux"),
    )
    for part, crc, name in parts:
        if crc32(part) != crc:
            return f"its {name} do not match their checksum"
    if header.kind == DATA and not kernel.frames_in_order(rows, len(frames)):
        return "its rows do not fit its frames"
    return None


def read_chunk(files: Files, handle: int, path: str, salt: int, place: ChunkPosition) -> Chunk | Gap:
    """The chunk at a position, verified; a Gap if it is damaged."""
    return chunk_in(files.read(handle, place.position, place.total_len), path, salt, place)


def chunk_in(raw: bytes | memoryview, path: str, salt: int, place: ChunkPosition) -> Chunk | Gap:
    """As `read_chunk`, of bytes that were read."""
    header = maybe_header(bytes(raw[:HEADER_BYTES]), salt)
    where = f"{path} at {place.position}"
    if header is None or header.base_lsn != place.base_lsn or header.count != place.count:
        return Gap(place.base_lsn, place.next_lsn, f"{where}: the chunk's header is damaged")
    body = memoryview(raw)[HEADER_BYTES:]
    fault = body_fault(header, body)
    if fault is not None:
        return Gap(place.base_lsn, place.next_lsn, f"{where}: {fault}")
    rows, frames, aux = split_body(header, body)
    tags = tags_of(aux) if header.aux_len else b""
    sources = sources_of(aux) if header.aux_len else b""
    return Chunk(header.base_lsn, header.count, header.base_ts, header.flags, rows, frames, tags, sources)


def read_aux(files: Files, handle: int, position: int, header: Header) -> bytes:
    """The checked aux of a chunk; empty when it is damaged."""
    skip = HEADER_BYTES + ROW_BYTES * header.count + header.frames_len
    aux = files.read(handle, position + skip, header.aux_len)
    return aux if crc32(aux) == header.aux_crc else b""


def probe(files: Files, handle: int, salt: int, start: int, stop: int) -> Iterator[tuple[int, Header]]:
    """Every chunk that checks anywhere in start..stop, tried at each place where one may begin."""
    position = (start + ALIGN - 1) // ALIGN * ALIGN
    skip_to = position
    while position < stop:
        block = files.read(handle, position, PROBE_BYTES + HEADER_BYTES)
        at = 0
        while (at := block.find(b"RQC1", at)) >= 0 and at < PROBE_BYTES:
            place = position + at
            if place % ALIGN == 0 and place >= skip_to:
                header = maybe_header(block[at : at + HEADER_BYTES], salt)
                if header is not None and place + header.total_len <= stop:
                    body = files.read(handle, place + HEADER_BYTES, header.body_len)
                    if body_fault(header, body) is None:
                        yield place, header
                        skip_to = place + header.total_len
            at += 4
        position += PROBE_BYTES


def chunks_through(
    files: Files, handle: int, salt: int, stop: int, start: int = SEGMENT_HEADER_BYTES
) -> Iterator[tuple[int, Header]]:
    """Every chunk of a segment up to `stop`, by its headers; skips damage to the next whole chunk."""
    position = start
    while position < stop:
        for at, header in walk(files, handle, salt, position, stop):
            yield at, header
            position = at + header.total_len
        if position >= stop:
            return
        following = next(probe(files, handle, salt, position + 1, stop), None)
        if following is None:
            return
        position = following[0]
