"""Mutations of the log's files: blind ones, which a checksum must catch, and ones that know the format and put the
checksums right again, which a parser must survive."""

import json
from collections.abc import Callable
from random import Random
from zlib import crc32

from commitlog.chunk import HEADER_BYTES
from commitlog.format.manifest import encode_edit
from commitlog.format.segment import SEGMENT_HEADER_BYTES
from commitlog.index.dictionary import HEAD as SNAPSHOT_HEAD
from commitlog.index.index import HEAD as INDEX_HEAD

WILD = (
    0,
    1,
    2,
    127,
    128,
    255,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63 - 1,
    2**64 - 1,
)


def blind(chance: Random, content: bytes, other: bytes) -> bytes:
    """Any change of bytes, at least one. other: a file to take bytes from."""
    out = bytearray(content)
    how = chance.randrange(7)
    at = chance.randrange(max(1, len(out)))
    size = chance.choice((1, 2, 8, 64, 512, 4096))
    if how == 0:
        for _ in range(chance.randrange(1, 9)):
            out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    elif how == 1:
        out[at : at + size] = bytes(len(out[at : at + size]))
    elif how == 2:
        del out[at:]
    elif how == 3:
        del out[at : at + size]
    elif how == 4:
        out[at:at] = chance.randbytes(size)
    elif how == 5:
        start = chance.randrange(max(1, len(other)))
        out[at : at + size] = other[start : start + len(out[at : at + size])]
    else:
        start = chance.randrange(max(1, len(out)))
        out[at : at + size] = bytes(out[start : start + size])
    return bytes(out)


def number_put(chance: Random, out: bytearray, first: int, end: int) -> None:
    """Put a wild number somewhere into first..end."""
    size = chance.choice((1, 2, 4, 8))
    at = chance.randrange(first, max(first + 1, end - size + 1))
    out[at : at + size] = (chance.choice(WILD) % (1 << 8 * size)).to_bytes(size, "little")


def chunk_header(chance: Random, content: bytes, at: int) -> bytes:
    """One of the numbers of a chunk's header is another; its checksum fits."""
    out = bytearray(content)
    number_put(chance, out, at + 4, at + HEADER_BYTES - 4)
    out[at + 124 : at + 128] = crc32(out[at : at + 124]).to_bytes(4, "little")
    return bytes(out)


def chunk_rows(chance: Random, content: bytes, at: int, rows_len: int, body_len: int) -> bytes:
    """Numbers in the rows and the aux of a chunk are others; all checksums fit."""
    out = bytearray(content)
    start = at + HEADER_BYTES
    frames_len = int.from_bytes(out[at + 28 : at + 32], "little")
    for _ in range(chance.randrange(1, 4)):
        if chance.randrange(2) and start + rows_len + frames_len < start + body_len:
            number_put(chance, out, start + rows_len + frames_len, start + body_len)
        else:
            number_put(chance, out, start, start + rows_len)
    parts = ((start, rows_len), (start + rows_len, frames_len))
    parts = (*parts, (start + rows_len + frames_len, body_len - rows_len - frames_len))
    for number, (first, size) in enumerate(parts):
        out[at + 68 + 4 * number : at + 72 + 4 * number] = crc32(out[first : first + size]).to_bytes(4, "little")
    out[at + 124 : at + 128] = crc32(out[at : at + 124]).to_bytes(4, "little")
    return bytes(out)


def segment_header(chance: Random, content: bytes) -> bytes:
    out = bytearray(content)
    number_put(chance, out, 12, 160)
    out[SEGMENT_HEADER_BYTES - 4 : SEGMENT_HEADER_BYTES] = crc32(out[: SEGMENT_HEADER_BYTES - 4]).to_bytes(4, "little")
    return bytes(out)


def index(chance: Random, content: bytes) -> bytes:
    """Numbers of head or sections are others; all checksums that can fit do."""
    out = bytearray(content)
    number_put(chance, out, 8, len(out))
    sizes = [int.from_bytes(out[24 + 4 * n : 28 + 4 * n], "little") for n in range(5)]
    at = INDEX_HEAD.size
    for number, size in enumerate(sizes):
        out[44 + 4 * number : 48 + 4 * number] = crc32(out[at : at + size]).to_bytes(4, "little")
        at += size
    out[INDEX_HEAD.size - 4 : INDEX_HEAD.size] = crc32(out[: INDEX_HEAD.size - 4]).to_bytes(4, "little")
    return bytes(out)


def snapshot(chance: Random, content: bytes) -> bytes:
    out = bytearray(content)
    number_put(chance, out, 8, chance.choice((SNAPSHOT_HEAD.size, len(out) - 4)))
    out[-4:] = crc32(out[:-4]).to_bytes(4, "little")
    return bytes(out)


def manifest(chance: Random, content: bytes) -> bytes:
    """An edit has other values, or lacks one; its checksum fits."""
    edits = [json.loads(line[9:]) for line in content.split(b"\n")[:-1]]
    edit = chance.choice(edits)
    key = chance.choice(list(edit))
    values = (None, -1, 0, 7, 2**70, 1.5, "", "x", "../../x.seg", [], {}, True, chance.choice(WILD))
    if chance.randrange(4):
        edit[key] = chance.choice(values)
    else:
        del edit[key]
    if not chance.randrange(3):
        edits.append(chance.choice(edits))
    return b"".join(map(encode_edit, edits))


Mutation = Callable[[Random, bytes], bytes]
