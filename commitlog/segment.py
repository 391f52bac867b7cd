"""One segment file: its header, and its chunks one by one. docs/log-format.md, "Segment".

Reading only; knows no partition. What does not check is reported, never repaired."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from commitlog.chunk import ALIGN, CTRL, DATA, HEADER_BYTES, Chunk, Gap, Header, maybe_header, split_body
from commitlog.errors import Damaged
from commitlog.files import Files
from commitlog.kernels import rows as kernel

MAGIC = b"RUMQSEG1"
FORMAT_VERSION = 1
SEGMENT_HEADER_BYTES = 4096
LAYOUT = struct.Struct("<8sHHIIH64s16sQQQI16s")
PROBE_BYTES = 1 << 20


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


class Place(NamedTuple):
    """Where a chunk stands in its file."""

    base_lsn: int
    position: int
    base_ts: int
    count: int  # type: ignore[assignment]  # records; tuple.count is of no use here
    total_len: int

    @property
    def next_lsn(self) -> int:
        return self.base_lsn + self.count


def encode_segment_header(header: SegmentHeader) -> bytes:
    name = header.stream.encode()
    raw = LAYOUT.pack(
        MAGIC, FORMAT_VERSION, FORMAT_VERSION, header.generation, header.partition, len(name), name, header.uuid,
        header.salt, header.base_lsn, header.created_us, header.epoch, header.boot_id,
    )  # fmt: skip
    raw = raw.ljust(SEGMENT_HEADER_BYTES - 4, b"\0")
    return raw + crc32(raw).to_bytes(4, "little")


def decode_segment_header(raw: bytes, path: str) -> SegmentHeader:
    """Raises Damaged when the bytes are not a header of a version that can be read."""
    if len(raw) < SEGMENT_HEADER_BYTES or crc32(raw[:-4]) != int.from_bytes(raw[-4:], "little"):
        raise Damaged(path, "the segment header is damaged")
    f = LAYOUT.unpack_from(raw)
    if f[0] != MAGIC or f[2] > FORMAT_VERSION:
        raise Damaged(path, "not a segment that this version can read")
    return SegmentHeader(f[3], f[4], f[6][: f[5]].decode(), f[7], f[8], f[9], f[10], f[11], f[12])


def read_header(files: Files, handle: int, path: str) -> SegmentHeader:
    return decode_segment_header(files.read(handle, 0, SEGMENT_HEADER_BYTES), path)


def walk(files: Files, handle: int, salt: int, start: int, stop: int) -> Iterator[tuple[int, Header]]:
    """(position, header) of each chunk from `start` on, until one does not check; bodies are not looked at."""
    buffer, at = b"", start
    position = start
    while position + HEADER_BYTES <= stop:
        if position + HEADER_BYTES > at + len(buffer) or position < at:
            buffer, at = files.read(handle, position, 1 << 16), position
        header = maybe_header(buffer[position - at : position - at + HEADER_BYTES], salt)
        if header is None or position + header.total_len > stop:
            return
        yield position, header
        position += header.total_len


def body_fault(header: Header, body: bytes) -> str | None:
    """What is wrong with a chunk's body; None when all of it checks."""
    if len(body) < header.body_len:
        return "it ends early"
    rows, frames, aux = split_body(header, body)
    for part, crc, name in (
        (rows, header.rows_crc, "rows"),
        (frames, header.frames_crc, "frames"),
        (aux, header.aux_crc, "aux"),
    ):
        if crc32(part) != crc:
            return f"its {name} do not match their checksum"
    if header.kind == DATA and not kernel.frames_in_order(rows, len(frames)):
        return "its rows do not fit its frames"
    return None


def read_chunk(files: Files, handle: int, path: str, salt: int, place: Place) -> Chunk | Gap:
    """The chunk at a place, checked; a Gap when it is not what was written."""
    raw = files.read(handle, place.position, place.total_len)
    header = maybe_header(raw[:HEADER_BYTES], salt)
    if header is None or header.base_lsn != place.base_lsn:
        return Gap(
            place.base_lsn, place.next_lsn, f"{path} at {place.position}: the chunk's header is damaged"
        )
    body = memoryview(raw)[HEADER_BYTES:]
    fault = body_fault(header, body)  # type: ignore[arg-type]
    if fault is not None:
        return Gap(place.base_lsn, place.next_lsn, f"{path} at {place.position}: {fault}")
    rows, frames, _ = split_body(header, body)
    return Chunk(header.base_lsn, header.count, header.base_ts, header.flags, rows, frames)


def read_aux(files: Files, handle: int, position: int, header: Header) -> bytes:
    """The checked aux of a chunk; empty when it is damaged."""
    skip = HEADER_BYTES + 32 * header.count + header.frames_len
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
                if header is None and len(block) < at + HEADER_BYTES:
                    header = maybe_header(files.read(handle, place, HEADER_BYTES), salt)
                if header is not None and place + header.total_len <= stop:
                    body = files.read(handle, place + HEADER_BYTES, header.body_len)
                    if body_fault(header, body) is None:
                        yield place, header
                        skip_to = place + header.total_len
            at += 4
        position += PROBE_BYTES


HOLDS_RECORDS = (DATA, CTRL)
