"""Kernel: rows of a chunk as one record batch of Kafka, version 2.

docs/reference/log-format.md, "Row" and "Frame"; https://kafka.apache.org/documentation/#messageformat. Knows no file:
which topics are wanted is a table that the caller fills. The checksum is the caller's: it has CRC-32C in hardware."""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

BATCH_HEADER_BYTES = 61
CRC_AT, CRC_FROM = 17, 21  # where the checksum is, and from where on it counts
UNDECIDED, WANTED, UNWANTED = 0, 1, 2  # of a topic in the table
TOPIC_IDS_MAX = 1 << 26  # a row with a higher one is damaged
UNDECIDED_ROWS_MAX = 256  # that are told at once

CONTENT_TYPE = cython.declare(bytes, b"content-type")
RESPONSE_TOPIC = cython.declare(bytes, b"mqtt-response-topic")
CORRELATION_DATA = cython.declare(bytes, b"mqtt-correlation-data")
EXPIRY = cython.declare(bytes, b"mqtt-message-expiry")
PAYLOAD_FORMAT = cython.declare(bytes, b"mqtt-payload-format")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_varint(out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.Py_ssize_t:
    """The position behind it."""
    while value > 127:
        out[at] = value & 127 | 128
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def size_of_varint(value: cython.ulonglong) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = 1
    while value > 127:
        value >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def zigzag(value: cython.longlong) -> cython.ulonglong:
    """Small numbers of either sign as small ones without."""
    if value >= 0:
        return cython.cast(cython.ulonglong, value) << 1
    return (cython.cast(cython.ulonglong, -(value + 1)) << 1) | 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_bytes(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Bytes with their length before them; the position behind."""
    at = put_varint(out, at, cython.cast(cython.ulonglong, size) << 1)
    if size > 0:
        if cython.compiled:
            memcpy(cython.address(out[at]), cython.address(data[start]), size)
        else:
            out[at : at + size] = data[start : start + size]
    return at + size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_big(out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.longlong, size: cython.int) -> cython.void:
    """A number of `size` bytes, the highest first."""
    k: cython.int
    for k in range(size):
        out[at + size - 1 - k] = value & 255
        value >>= 8


@cython.cfunc
@cython.inline
def name_of_property(kind: cython.uint) -> bytes:
    if kind == 3:
        return CONTENT_TYPE
    if kind == 8:
        return RESPONSE_TOPIC
    if kind == 9:
        return CORRELATION_DATA
    if kind == 2:
        return EXPIRY
    return PAYLOAD_FORMAT


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def digits_of(value: cython.ulonglong) -> cython.Py_ssize_t:
    count: cython.Py_ssize_t = 1
    while value > 9:
        value //= 10
        count += 1
    return count


@cython.cfunc
@cython.exceptval(check=False)
def walk_properties(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    raw: cython.const[cython.uchar][::1],
    begin: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    writes: cython.bint,
) -> cython.ulonglong:
    """Headers of the properties begin..stop of a frame, without their length. MQTT 5.0, 2.2.2

    returns: where the headers end, and in the lowest 32 bits how many there are; nothing is written unless `writes`"""
    kind: cython.uint
    size: cython.Py_ssize_t
    value_at: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    number: cython.ulonglong = 0
    count: cython.ulonglong = 0
    name: cython.const[cython.uchar][::1]
    while begin < stop:
        kind = raw[begin]
        begin += 1
        if kind == 1 or kind == 2:
            size = 1 if kind == 1 else 4
            if begin + size > stop:
                break
            number = raw[begin]
            if kind == 2:
                number = number << 24 | raw[begin + 1] << 16 | raw[begin + 2] << 8 | raw[begin + 3]
            begin += size
            name = name_of_property(kind)
            value_size = digits_of(number)
            if writes:
                at = put_bytes(out, at, name, 0, len(name))
                at = put_varint(out, at, cython.cast(cython.ulonglong, value_size) << 1)
                for size in range(value_size):
                    out[at + value_size - 1 - size] = 48 + number % 10
                    number //= 10
                at += value_size
            else:
                at += 1 + len(name) + 1 + value_size
        elif kind == 3 or kind == 8 or kind == 9:
            if begin + 2 > stop:
                break
            size = raw[begin] << 8 | raw[begin + 1]
            begin += 2
            if begin + size > stop:
                break
            name = name_of_property(kind)
            if writes:
                at = put_bytes(out, at, name, 0, len(name))
                at = put_bytes(out, at, raw, begin, size)
            else:
                at += 1 + len(name) + size_of_varint(cython.cast(cython.ulonglong, size) << 1) + size
            begin += size
        elif kind == 38:
            if begin + 2 > stop:
                break
            size = raw[begin] << 8 | raw[begin + 1]
            value_at = begin + 2 + size
            if value_at + 2 > stop:
                break
            value_size = raw[value_at] << 8 | raw[value_at + 1]
            if value_at + 2 + value_size > stop:
                break
            if writes:
                at = put_bytes(out, at, raw, begin + 2, size)
                at = put_bytes(out, at, raw, value_at + 2, value_size)
            else:
                at += size_of_varint(cython.cast(cython.ulonglong, size) << 1) + size
                at += size_of_varint(cython.cast(cython.ulonglong, value_size) << 1) + value_size
            begin = value_at + 2 + value_size
        else:
            break  # no property that a stored PUBLISH has: what is behind it cannot be told apart
        count += 1
    return cython.cast(cython.ulonglong, at) << 32 | count


def topic_at(frames: object, start: cython.Py_ssize_t) -> bytes:
    """The topic of the frame that begins at `start`."""
    at: cython.Py_ssize_t = start + 1
    data = memoryview(frames)
    raw: cython.const[cython.uchar][::1] = data
    while raw[at] & 128:
        at += 1
    size: cython.Py_ssize_t = raw[at + 1] << 8 | raw[at + 2]
    return bytes(data[at + 3 : at + 3 + size])


def undecided_rows(rows: object, table: bytearray, first: cython.Py_ssize_t) -> list[int]:
    """Rows from `first` on, of topics that the table has nothing of; some of them, if there are many."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("B").cast("I")
    known: cython.const[cython.uchar][::1] = memoryview(table)
    size: cython.Py_ssize_t = len(known)
    count: cython.Py_ssize_t = len(words) // 8
    last: cython.longlong = -1
    i: cython.Py_ssize_t
    found: list = []
    for i in range(first, count):
        if words[i * 8] != last:
            last = words[i * 8]
            if last < TOPIC_IDS_MAX and (last >= size or known[last] == 0):
                found.append(i)
                if len(found) >= UNDECIDED_ROWS_MAX:
                    break
    return found


def put_batch(
    chunk: object,
    first: cython.Py_ssize_t,
    table: object,
    clears: cython.bint,
    buffer: bytearray,
    begin: cython.Py_ssize_t,
    bytes_max: cython.Py_ssize_t,
) -> tuple[int, int, int, int]:
    """Write one batch of the wanted rows of a chunk, from row `first` on, at `begin` of the buffer.

    table: of topics by their id, all decided; None: every row is wanted
    clears: the value of a cleared retained message is null, not empty
    bytes_max: of the batch; one record always fits, if the buffer has room
    returns: (end of the batch, records, next row, bytes needed). next row: the first that the batch does not span;
    bytes needed: by that row, if the buffer has no room for it, else 0. Without a record nothing is written.
    """
    words: cython.const[cython.uint][::1] = memoryview(chunk.rows).cast("B").cast("I")
    raw: cython.const[cython.uchar][::1] = memoryview(chunk.frames)
    out: cython.uchar[::1] = memoryview(buffer)
    known: cython.const[cython.uchar][::1] = memoryview(b"" if table is None else table)
    takes_all: cython.bint = table is None
    known_size: cython.Py_ssize_t = len(known)
    count: cython.Py_ssize_t = len(words) // 8
    room: cython.Py_ssize_t = len(out)
    base_lsn: cython.longlong = chunk.base_lsn
    base_ts: cython.longlong = chunk.base_ts
    at: cython.Py_ssize_t = begin + BATCH_HEADER_BYTES
    records: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t = first
    w: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    payload: cython.Py_ssize_t
    topic: cython.Py_ssize_t
    topic_size: cython.Py_ssize_t
    properties: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    size: cython.Py_ssize_t
    header_bytes: cython.Py_ssize_t
    headers: cython.ulonglong
    walked: cython.ulonglong
    flags: cython.uint
    first_ms: cython.longlong = -1
    last_ms: cython.longlong = -1
    time_ms: cython.longlong
    need: cython.Py_ssize_t = 0
    while i < count:
        w = i * 8
        if not takes_all and (words[w] >= known_size or known[words[w]] != 1):
            i += 1
            continue
        start = words[w + 1]
        stop = words[w + 9] if i + 1 < count else len(raw)
        payload = start + words[w + 5]
        flags = words[w + 7] & 0xFFFF
        topic = start + 1
        while raw[topic] & 128:
            topic += 1
        topic_size = raw[topic + 1] << 8 | raw[topic + 2]
        topic += 3
        time_ms = (base_ts + words[w + 4]) // 1000
        if records == 0:
            first_ms = time_ms
        headers = 0
        header_bytes = 0
        properties = payload
        if flags & 32:
            properties = topic + topic_size
            if flags & 3:
                properties += 2
            while raw[properties] & 128:
                properties += 1
            properties += 1
            walked = walk_properties(out, 0, raw, properties, payload, False)
            headers = walked & 0xFFFFFFFF
            header_bytes = walked >> 32
        value_size = stop - payload
        size = 1 + size_of_varint(zigzag(time_ms - first_ms)) + size_of_varint(zigzag(i - first))
        size += size_of_varint(zigzag(topic_size)) + topic_size
        size += size_of_varint(zigzag(value_size)) + value_size
        size += size_of_varint(zigzag(headers)) + header_bytes
        if records and at + size + 10 - begin > bytes_max:
            break
        if at + size + 10 > room:
            need = at + size + 10 - begin
            break
        at = put_varint(out, at, zigzag(size))
        out[at] = 0
        at = put_varint(out, at + 1, zigzag(time_ms - first_ms))
        at = put_varint(out, at, zigzag(i - first))
        at = put_bytes(out, at, raw, topic, topic_size)
        if clears and value_size == 0 and flags & 4:
            out[at] = 1
            at += 1
        else:
            at = put_bytes(out, at, raw, payload, value_size)
        at = put_varint(out, at, zigzag(headers))
        if headers:
            at = walk_properties(out, at, raw, properties, payload, True) >> 32
        if time_ms > last_ms:
            last_ms = time_ms
        records += 1
        i += 1
    if records == 0:
        return begin, 0, i, need
    put_big(out, begin, base_lsn + first, 8)
    put_big(out, begin + 8, at - begin - 12, 4)
    put_big(out, begin + 12, -1, 4)
    out[begin + 16] = 2
    put_big(out, begin + 21, 0, 2)
    put_big(out, begin + 23, i - first - 1, 4)
    put_big(out, begin + 27, first_ms, 8)
    put_big(out, begin + 35, last_ms, 8)
    put_big(out, begin + 43, -1, 8)
    put_big(out, begin + 51, -1, 2)
    put_big(out, begin + 53, -1, 4)
    put_big(out, begin + 57, records, 4)
    return at, records, i, need
