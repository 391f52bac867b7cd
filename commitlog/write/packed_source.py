"""Whether packing knows all that a segment says: it keeps what this version knows, and nothing else.

A later version may say more, in what this one's readers skip: then the segment stays as it is, as one with any damage.
docs/reference/log-format.md, "Packing"."""

from __future__ import annotations

from commitlog.chunk import (
    DATA,
    FLAG_EXPIRY,
    FLAG_QOS,
    FLAG_RETAIN,
    FLAG_TOPICS,
    FLAG_UNIFORM,
    FLAG_V5,
    HEADER_BYTES,
    MARK,
    PUBLISHERS,
    SEAL,
    SOURCES,
    SYNC_ALIGN,
    TAGS,
    TOPICS,
    Header,
    entries,
)
from commitlog.disk.files import Files
from commitlog.errors import Damaged
from commitlog.format.segment import (
    SEGMENT_HEADER_BYTES,
    SegmentHeader,
    decode_segment_header,
    encode_segment_header,
)
from commitlog.row_layout import ROW_BYTES

FLAGS = FLAG_QOS | FLAG_V5 | FLAG_EXPIRY | FLAG_RETAIN | FLAG_TOPICS | FLAG_UNIFORM
AUX_KINDS = frozenset((TOPICS, PUBLISHERS, TAGS, SOURCES))
FORM_AT, GENERATION_AT, ZEROS_AT, CRC_AT = 88, 92, 96, 124  # of a chunk's header
FORM = bytes((ROW_BYTES, 0, 1, 6))  # row size, checksum, alignment
ZEROS = bytes(SYNC_ALIGN)  # padding is shorter


def known_header(files: Files, handle: int, path: str) -> SegmentHeader:
    """The header of a segment that says no more than this version writes. raises: OSError, Damaged, FormatTooNew"""
    raw = files.read(handle, 0, SEGMENT_HEADER_BYTES)
    header = decode_segment_header(raw, path)
    if encode_segment_header(header) != raw:
        raise Damaged(path, "the segment header says more than this version knows")
    return header


def is_known(segment: SegmentHeader, header: Header, raw: memoryview) -> bool:
    """raw: the chunk, with its padding. Whether its aux is sound is for who reads it."""
    if header.kind not in (DATA, MARK, SEAL) or header.flags & ~FLAGS or header.epoch != segment.epoch:
        return False
    if header.kind != DATA and header.body_len:
        return False
    if raw[FORM_AT:GENERATION_AT] != FORM or raw[GENERATION_AT:ZEROS_AT] != segment.generation.to_bytes(4, "little"):
        return False
    end = HEADER_BYTES + header.body_len
    if not (ZEROS.startswith(bytes(raw[ZEROS_AT:CRC_AT])) and ZEROS.startswith(bytes(raw[end:]))):
        return False
    return not header.aux_len or is_known_aux(raw[end - header.aux_len : end])


def is_known_aux(aux: memoryview) -> bool:
    """Whether its entries are all of known kinds, and all of it."""
    size = 0
    for kind, items in entries(aux):
        if kind not in AUX_KINDS:
            return False
        size += 8 + len(items)
    return size == len(aux)
