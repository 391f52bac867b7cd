"""Kernel: the bytes of a chunk with few records, none of which names anything new.

docs/reference/log-format.md, "Chunk".
That is the chunk of a message that comes alone, or of some that came one after the other and were chunks of their own
in memory. The general way is `chunk_layout`; here no object is made for a part of it. Knows no file."""

import cython

from commitlog.checksum import crc32 as checksum
from commitlog.chunk import Chunk, encode_header
from commitlog.kernels.rows import lay_out

if cython.compiled:
    from cython.cimports.commitlog.chunk import Chunk  # type: ignore[no-redef]
    from cython.cimports.commitlog.kernels.buffers import octets
    from cython.cimports.commitlog.kernels.buffers import words as words_at
    from cython.cimports.libc.string import memcpy, memset

# Written out where it is used, the compiler takes it for a Python number.
BYTES_MAX = cython.declare(cython.Py_ssize_t, 16384)  # of rows and frames
TABLED_MAX = cython.declare(cython.Py_ssize_t, 512)  # bytes; beyond, a faster checksum pays for its objects
HEADER_BYTES = cython.declare(cython.Py_ssize_t, 128)
MAGIC = cython.declare(cython.uint, int.from_bytes(b"RQC1", "little"))
VERSION_AND_KIND = cython.declare(cython.uint, 0x0101)
LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
UNIFORM = cython.declare(cython.uint, 32)
QOS_AND_VERSION = cython.declare(cython.uint, 19)
DATA = 1
TABLES = cython.declare(cython.uint[2048])  # for CRC-32, eight bytes at a time


def fill_tables() -> None:
    i: cython.uint
    k: cython.uint
    crc: cython.uint
    for i in range(256):
        crc = i
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
        TABLES[i] = crc
    for k in range(1, 8):
        for i in range(256):
            crc = TABLES[(k - 1) * 256 + i]
            TABLES[k * 256 + i] = (crc >> 8) ^ TABLES[crc & 255]


if cython.compiled:
    fill_tables()


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def crc32(data: cython.pointer[cython.const[cython.uchar]], size: cython.Py_ssize_t) -> cython.uint:
    crc: cython.uint = LOW
    low: cython.uint
    high: cython.uint
    while size >= 8:
        low = cython.cast(cython.pointer[cython.const[cython.uint]], data)[0] ^ crc
        high = cython.cast(cython.pointer[cython.const[cython.uint]], data)[1]
        crc = (
            TABLES[1792 + (low & 255)]
            ^ TABLES[1536 + ((low >> 8) & 255)]
            ^ TABLES[1280 + ((low >> 16) & 255)]
            ^ TABLES[1024 + (low >> 24)]
            ^ TABLES[768 + (high & 255)]
            ^ TABLES[512 + ((high >> 8) & 255)]
            ^ TABLES[256 + ((high >> 16) & 255)]
            ^ TABLES[high >> 24]
        )
        data += 8
        size -= 8
    while size > 0:
        crc = (crc >> 8) ^ TABLES[(crc ^ data[0]) & 255]
        data += 1
        size -= 1
    return ~crc


@cython.cfunc
def sum_of(out: object, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.uint:
    """CRC-32 of a part of `out`."""
    if size <= TABLED_MAX:
        return crc32(octets(out) + at, size)
    whole: cython.uint = checksum(memoryview(out)[at : at + size])  # type: ignore[call-overload]
    return whole


def join(chunks: list, out: object, frames_at: cython.Py_ssize_t) -> cython.uint:
    """Put the rows of consecutive chunks without tags at the beginning of `out`, and their frames behind these.

    frames_at: where the rows end; returns: flags of the whole. `out` has room for all of it."""
    if not cython.compiled:
        return join_python(chunks, out, frames_at)
    chunk: Chunk
    data: cython.pointer[cython.uchar] = octets(out)
    words: cython.pointer[cython.uint] = words_at(out)
    row: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    rows_len: cython.Py_ssize_t
    frames_len: cython.Py_ssize_t
    flags: cython.uint = 0
    uniform: cython.uint = UNIFORM
    form: cython.uint = 0
    more: cython.uint
    base_ts: cython.longlong = 0
    for chunk in chunks:
        rows_len, frames_len = len(chunk.rows), len(chunk.frames)
        memcpy(data + 32 * row, octets(chunk.rows), rows_len)
        memcpy(data + frames_at + at, octets(chunk.frames), frames_len)
        if row == 0:
            base_ts, form = chunk.base_ts, data[28] & QOS_AND_VERSION
        more = chunk.base_ts - base_ts
        flags |= chunk.flags
        if not chunk.flags & UNIFORM or data[32 * row + 28] & QOS_AND_VERSION != form:
            uniform = 0
        first = row
        row += rows_len // 32
        if first:
            while first < row:
                words[8 * first + 1] += at
                words[8 * first + 4] += more
                first += 1
        at += frames_len
    return (flags & ~UNIFORM) | uniform


def encode(
    out: object, rows: object, frames: object, topics: object, publishers: object, flags: cython.uint,
    salt: cython.ulonglong, base_lsn: cython.ulonglong, base_ts: cython.ulonglong, durable_lsn: cython.ulonglong,
    epoch: cython.uint, chain: cython.uint, generation: cython.uint, align: cython.Py_ssize_t,
    ahead: cython.Py_ssize_t,
) -> cython.Py_ssize_t:  # fmt: skip
    """Lay out a chunk of data at the beginning of `out`; its length.

    topics, publishers: a byte for each number that the segment has named
    align, ahead: it ends at a multiple of `align` if it begins `ahead` bytes behind one
    out: 20 KiB, as the last call has left it, zeros before the first one
    0: a number is new, or it is not small: nothing is changed then"""
    count: cython.Py_ssize_t
    size: cython.Py_ssize_t
    total: cython.Py_ssize_t
    i: cython.Py_ssize_t
    low: cython.uint = LOW
    high: cython.uint = 0
    late: cython.uint = 0
    used: cython.Py_ssize_t
    if not cython.compiled:
        return encode_python(
            out, rows, frames, topics, publishers, flags, salt, base_lsn, base_ts, durable_lsn, epoch, chain,
            generation, align, ahead,
        )  # fmt: skip
    words: cython.pointer[cython.uint] = words_at(rows)
    named: cython.pointer[cython.uchar] = octets(topics)
    known: cython.pointer[cython.uchar] = octets(publishers)
    data: cython.pointer[cython.uchar] = octets(out)
    head: cython.pointer[cython.uint] = words_at(out)
    named_end: cython.Py_ssize_t = len(topics)
    known_end: cython.Py_ssize_t = len(publishers)
    rows_len: cython.Py_ssize_t = len(rows)
    frames_len: cython.Py_ssize_t = len(frames)
    count = rows_len // 32
    size = HEADER_BYTES + rows_len + frames_len
    total = (ahead + size + align - 1) // align * align - ahead
    if count == 0 or rows_len + frames_len > BYTES_MAX or total > len(out):
        return 0
    for i in range(count):
        if words[8 * i] >= named_end or not named[words[8 * i]]:
            return 0
        if words[8 * i + 6] >= known_end or not known[words[8 * i + 6]]:
            return 0
        low = min(low, words[8 * i])
        high = max(high, words[8 * i])
        late = max(late, words[8 * i + 4])
    # Behind the chunk before this one there are zeros: a page of them is not written each time.
    used = HEADER_BYTES + 32 * cython.cast(cython.Py_ssize_t, head[6]) + head[7]
    if used > size:
        memset(data + size, 0, used - size)
    memcpy(data + HEADER_BYTES, words, rows_len)
    memcpy(data + HEADER_BYTES + rows_len, octets(frames), frames_len)
    memset(data, 0, HEADER_BYTES)
    head[0] = MAGIC
    head[1] = VERSION_AND_KIND | flags << 16
    head[2], head[3] = salt & LOW, salt >> 32
    head[4], head[5] = base_lsn & LOW, base_lsn >> 32
    head[6], head[7], head[8], head[9] = count, frames_len, 0, total
    head[10], head[11] = base_ts & LOW, base_ts >> 32
    head[12], head[13] = durable_lsn & LOW, durable_lsn >> 32
    head[14], head[15], head[16] = late, epoch, chain
    head[17] = sum_of(out, HEADER_BYTES, rows_len)
    head[18] = sum_of(out, HEADER_BYTES + rows_len, frames_len)
    head[19] = 0  # of no aux
    head[20], head[21] = low, high
    head[22] = 32 | 1 << 16 | 6 << 24
    head[23] = generation
    head[31] = crc32(data, HEADER_BYTES - 4)
    return total


def header_word(out: object, number: cython.Py_ssize_t) -> cython.uint:
    """A u32 of the header of the chunk in `out`, such as its CRC."""
    if cython.compiled:
        return words_at(out)[number]
    return int.from_bytes(out[4 * number : 4 * number + 4], "little")  # type: ignore[index]


def join_python(chunks: list[Chunk], out: object, frames_at: int) -> int:
    """As `join`, uncompiled: the general way."""
    size = frames_at + sum(len(chunk.frames) for chunk in chunks)
    whole = bytearray(HEADER_BYTES + (size + 3) // 4 * 4)
    flags, _ = lay_out(chunks, whole, HEADER_BYTES + frames_at)
    out[:size] = whole[HEADER_BYTES : HEADER_BYTES + size]  # type: ignore[index]
    return flags


def encode_python(
    out: object, rows: object, frames: object, topics: object, publishers: object, flags: int, salt: int, base_lsn: int,
    base_ts: int, durable_lsn: int, epoch: int, chain: int, generation: int, align: int, ahead: int,
) -> int:  # fmt: skip
    """As `encode`, uncompiled."""
    row_bytes, frame_bytes = bytes(rows), bytes(frames)  # type: ignore[call-overload]
    words = memoryview(row_bytes).cast("I")
    size = HEADER_BYTES + len(row_bytes) + len(frame_bytes)
    total = (ahead + size + align - 1) // align * align - ahead
    if size - HEADER_BYTES > BYTES_MAX or not row_bytes or total > len(out):  # type: ignore[arg-type]
        return 0
    for number, marks in [(w, topics) for w in words[::8]] + [(w, publishers) for w in words[6::8]]:
        if number >= len(marks) or not marks[number]:  # type: ignore[arg-type, index]
            return 0
    late = max(words[4::8])
    raw, _ = encode_header(
        DATA, flags, salt, base_lsn, len(words) // 8, row_bytes, frame_bytes, b"", total, base_ts, durable_lsn, late,
        epoch, chain, min(words[::8]), max(words[::8]), generation,
    )  # fmt: skip
    used = HEADER_BYTES + 32 * header_word(out, 6) + header_word(out, 7)
    out[: max(total, used)] = (raw + row_bytes + frame_bytes).ljust(max(total, used), b"\0")  # type: ignore[index]
    return total
