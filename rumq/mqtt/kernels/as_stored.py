"""Kernel: rows of a chunk whose stored frames go out as they are, for one group of subscribers among many."""

import cython

from rumq.mqtt.kernels.fanout import Blob, Form

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy
    from cython.cimports.rumq.mqtt.kernels.buffers import octets
    from cython.cimports.rumq.mqtt.kernels.buffers import words as words_at
    from cython.cimports.rumq.mqtt.kernels.fanout import Blob, Form

ROW_RETAIN = cython.declare(cython.uint, 4)
ROW_EXPIRY = cython.declare(cython.uint, 8)
ROW_V5 = cython.declare(cython.uint, 16)
SHARED_BYTES_MIN = cython.declare(cython.Py_ssize_t, 1 << 11)  # fewer are copied: that costs less than a view
# A view keeps all frames of its chunk while a slow client has it in its outbox: so many times its size at most.
SHARED_PART = cython.declare(cython.Py_ssize_t, 16)


def pick(
    rows: object,
    frames: object,
    picked: object,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    base_lsn: cython.ulonglong,
    form: Form,
    v5: cython.bint,
    packet_max: cython.Py_ssize_t,
) -> "Blob | None":
    """The frames of the rows picked[first:stop]; None where one of them cannot go out as it is stored.

    packet_max: the longest packet that the group takes; 0: any"""
    words: cython.p_uint
    numbers: cython.p_uint
    src: cython.p_uchar
    if cython.compiled:
        words, numbers, src = words_at(rows), words_at(picked), octets(frames)
    else:
        words, numbers, src = memoryview(rows).cast("I"), picked, frames
    total: cython.Py_ssize_t = len(frames)
    all_rows: cython.Py_ssize_t = len(rows) // 32
    size: cython.Py_ssize_t = 0
    qos_count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    row: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    end: cython.Py_ssize_t
    flags: cython.uint
    qos_max: cython.uint = form.qos
    leaves_retain: cython.bint = form.retain != 0
    for i in range(first, stop):
        row = numbers[i]
        flags = words[row * 8 + 7] & 0xFFFF
        start = words[row * 8 + 1]
        end = words[row * 8 + 9] if row + 1 < all_rows else total
        if (
            end <= start
            or flags & 3 > qos_max
            or (flags & ROW_V5 != 0) != v5
            or flags & ROW_EXPIRY
            or (leaves_retain and flags & ROW_RETAIN)
            or (packet_max and end - start > packet_max)
        ):
            return None
        if flags & 3:
            qos_count += 1
        size += end - start
    begin: cython.Py_ssize_t = numbers[first]
    start = words[begin * 8 + 1]
    blob: Blob
    data: object
    pieces: list
    if row - begin == stop - first - 1:  # consecutive
        if size >= SHARED_BYTES_MIN and size * SHARED_PART >= total:
            data = memoryview(frames)[start : start + size]
        elif cython.compiled:
            data = PyBytes_FromStringAndSize(cython.cast(cython.p_char, cython.address(src[start])), size)
        else:
            data = bytes(src[start : start + size])
        blob = Blob(data, stop - first, qos_count, None, None, base_lsn, False)
        blob.stored_rows = rows
        blob.first_row = begin
        return blob
    starts: object = bytearray(4 * (stop - first + 1))
    places: object = bytearray(4 * (stop - first + 1))
    s: cython.p_uint
    r: cython.p_uint
    if cython.compiled:
        s, r = words_at(starts), words_at(places)
    else:
        s, r = memoryview(starts).cast("I"), memoryview(places).cast("I")
    at: cython.Py_ssize_t = 0
    if cython.compiled:
        data = PyBytes_FromStringAndSize(cython.NULL, size)
        out: cython.p_char = PyBytes_AS_STRING(data)
    else:
        pieces = []
    for i in range(first, stop):
        row = numbers[i]
        start = words[row * 8 + 1]
        end = words[row * 8 + 9] if row + 1 < all_rows else total
        s[i - first] = at
        r[i - first] = row
        if cython.compiled:
            memcpy(out + at, cython.address(src[start]), end - start)
        else:
            pieces.append(bytes(src[start:end]))
        at += end - start
    s[stop - first] = at
    if not cython.compiled:
        data = b"".join(pieces)
    return Blob(
        data,
        stop - first,
        qos_count,
        memoryview(starts).cast("I"),
        memoryview(places).cast("I"),
        base_lsn,
        False,
    )
