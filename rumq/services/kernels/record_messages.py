"""Kernel: the records of a chunk as the field `records` of rumq.v1.SubscribeResponse, serialized.

docs/reference/log-format.md, "Row" and "Frame"; the numbers of the fields are those of broker_service.proto, and
https://protobuf.dev/programming-guides/encoding says how they are written. Knows no file: which
topics are wanted is a table that the caller fills."""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy, memmove

VARINT_BYTES_MAX = cython.declare(cython.Py_ssize_t, 10)
FIXED_BYTES_MAX = cython.declare(cython.Py_ssize_t, 96)
NEVER = (1 << 63) - 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_varint(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    value: cython.ulonglong,
) -> cython.Py_ssize_t:
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
def put_bytes(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    tag: cython.uint,
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """A field of bytes or text, with its tag and length; the position behind it."""
    out[at] = tag
    at = put_varint(out, at + 1, size)
    if size > 0:
        if cython.compiled:
            memcpy(cython.address(out[at]), cython.address(data[start]), size)
        else:
            out[at : at + size] = data[start : start + size]
    return at + size


@cython.cfunc
@cython.exceptval(check=False)
def put_properties(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    raw: cython.const[cython.uchar][::1],
    begin: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Content type, response topic, correlation data and user properties of a frame; the position behind them.

    raw: begin..stop are the properties, without their length. MQTT 5.0, 2.2.2"""
    kind: cython.uint
    size: cython.Py_ssize_t
    k: cython.Py_ssize_t
    value: cython.Py_ssize_t
    while begin < stop:
        kind = raw[begin]
        begin += 1
        if kind == 1:
            begin += 1
        elif kind == 2:
            begin += 4
        elif kind == 3 or kind == 8 or kind == 9:
            if begin + 2 > stop:
                break
            size = raw[begin] << 8 | raw[begin + 1]
            begin += 2
            if begin + size > stop:
                break
            at = put_bytes(out, at, 0x4A if kind == 3 else 0x5A if kind == 8 else 0x62, raw, begin, size)
            begin += size
        elif kind == 38:
            if begin + 2 > stop:
                break
            size = raw[begin] << 8 | raw[begin + 1]
            k = begin + 2 + size
            if k + 2 > stop:
                break
            value = raw[k] << 8 | raw[k + 1]
            if k + 2 + value > stop:
                break
            out[at] = 0x52
            at = put_varint(out, at + 1, 2 + size_of_varint(size) + size + size_of_varint(value) + value)
            at = put_bytes(out, at, 0x0A, raw, begin + 2, size)
            at = put_bytes(out, at, 0x12, raw, k + 2, value)
            begin = k + 2 + value
        else:
            break  # no property that a stored PUBLISH has: what is behind it cannot be told apart
    return at


@cython.cfunc
@cython.exceptval(check=False)
def expiry_of(
    raw: cython.const[cython.uchar][::1],
    begin: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.longlong:
    """Seconds of the message expiry interval among the properties; -1: there is none."""
    kind: cython.uint
    while begin < stop:
        kind = raw[begin]
        begin += 1
        if kind == 2:
            if begin + 4 > stop:
                break
            return (
                cython.cast(cython.longlong, raw[begin]) << 24
                | raw[begin + 1] << 16
                | raw[begin + 2] << 8
                | raw[begin + 3]
            )
        if kind == 1:
            begin += 1
        elif kind == 3 or kind == 8 or kind == 9:
            if begin + 2 > stop:
                break
            begin += 2 + (raw[begin] << 8 | raw[begin + 1])
        elif kind == 38:
            if begin + 2 > stop:
                break
            begin += 2 + (raw[begin] << 8 | raw[begin + 1])
            if begin + 2 > stop:
                break
            begin += 2 + (raw[begin] << 8 | raw[begin + 1])
        else:
            break
    return -1


def topic_at(frames: object, start: cython.Py_ssize_t) -> bytes:
    """The topic of the frame that begins at `start`."""
    at: cython.Py_ssize_t = start + 1
    data = memoryview(frames)
    raw: cython.const[cython.uchar][::1] = data
    while raw[at] & 128:
        at += 1
    size: cython.Py_ssize_t = raw[at + 1] << 8 | raw[at + 2]
    return bytes(data[at + 3 : at + 3 + size])


def put_records(
    chunk: object,
    first: cython.Py_ssize_t,
    wanted: dict,
    partition: bytes,
    publishers: dict,
    now_us: cython.longlong,
    buffer: bytearray,
    bytes_max: cython.Py_ssize_t,
) -> tuple[int, int, int, int]:
    """Write the wanted records of a chunk from row `first` on into `buffer`, until it has `bytes_max` bytes or more.

    wanted: topic id -> None, or from which lsn and which topic offset on a record is wanted: one of them is enough
    publishers: number -> client id, of those that are told
    now_us: what has expired by then is left out
    returns: (bytes written, records written, next row, bytes needed); next row: the first that was not looked at, as
    there was no room, or its topic is not in `wanted`; bytes needed: by that row, 0 if its topic is what is missing
    """
    words: cython.const[cython.uint][::1] = memoryview(chunk.rows).cast("B").cast("I")
    raw: cython.const[cython.uchar][::1] = memoryview(chunk.frames)
    out: cython.uchar[::1] = memoryview(buffer)
    path: cython.const[cython.uchar][::1] = memoryview(partition)
    name: cython.const[cython.uchar][::1]
    count: cython.Py_ssize_t = len(words) // 8
    room: cython.Py_ssize_t = len(out)
    base_lsn: cython.longlong = chunk.base_lsn
    base_ts: cython.longlong = chunk.base_ts
    at: cython.Py_ssize_t = 0
    written: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t = first
    w: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    payload: cython.Py_ssize_t
    topic: cython.Py_ssize_t
    topic_size: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    need: cython.Py_ssize_t
    body: cython.Py_ssize_t
    size: cython.Py_ssize_t
    reserved: cython.Py_ssize_t
    actual: cython.Py_ssize_t
    flags: cython.uint
    offset: cython.ulonglong
    expiry: cython.longlong
    from_lsn: cython.longlong
    from_offset: cython.longlong
    time_us: cython.longlong
    known_id: cython.longlong = -1
    while i < count and at < bytes_max:
        w = i * 8
        if words[w] != known_id:
            known_id = words[w]
            found = wanted.get(known_id, 0)
            if found is None:
                from_lsn = NEVER
                from_offset = NEVER
            elif found == 0:
                return at, written, i, 0
            else:
                from_lsn, from_offset = found
        offset = words[w + 2] | (cython.cast(cython.ulonglong, words[w + 3]) << 32)
        if base_lsn + i < from_lsn and cython.cast(cython.longlong, offset) < from_offset:
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
        begin = payload
        if flags & 32:
            begin = topic + topic_size
            if flags & 3:
                begin += 2
            while raw[begin] & 128:
                begin += 1
            begin += 1
        time_us = base_ts + words[w + 4]
        expiry = -1
        if flags & 8:
            expiry = expiry_of(raw, begin, payload)
            if expiry >= 0 and time_us + expiry * 1000000 <= now_us:
                i += 1
                continue
        publisher = publishers.get(words[w + 6]) if publishers else None
        need = FIXED_BYTES_MAX + len(path) + (stop - start) + 2 * (payload - begin)
        if publisher is not None:
            need += len(publisher)
        if at + need > room:
            return at, written, i, need
        out[at] = 0x0A
        reserved = size_of_varint(need)
        body = at + 1 + reserved
        size = put_bytes(out, body, 0x0A, raw, topic, topic_size)
        out[size] = 0x10
        size = put_varint(out, size + 1, offset + 1)
        if stop > payload:
            size = put_bytes(out, size, 0x1A, raw, payload, stop - payload)
        out[size] = 0x20
        size = put_varint(out, size + 1, time_us)
        size = put_bytes(out, size, 0x2A, path, 0, len(path))
        if base_lsn + i:
            out[size] = 0x30
            size = put_varint(out, size + 1, base_lsn + i)
        if flags & 4:
            out[size] = 0x38
            out[size + 1] = 1
            size += 2
        if publisher:
            name = publisher
            size = put_bytes(out, size, 0x42, name, 0, len(name))
        if flags & 32:
            size = put_properties(out, size, raw, begin, payload)
        if expiry >= 0:
            out[size] = 0x68
            size = put_varint(out, size + 1, (time_us + expiry * 1000000 - now_us + 999999) // 1000000)
        size -= body
        actual = size_of_varint(size)
        if actual < reserved:  # the length takes fewer bytes than were kept for it
            if cython.compiled:
                memmove(cython.address(out[at + 1 + actual]), cython.address(out[body]), size)
            else:
                out[at + 1 + actual : at + 1 + actual + size] = out[body : body + size]
        put_varint(out, at + 1, size)
        at = at + 1 + actual + size
        written += 1
        i += 1
    return at, written, i, 0


def places_of(rows: object, publishers: object) -> list[tuple[int, int, int]]:
    """(row, topic id, topic offset) of the rows of these publishers, in order."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("B").cast("I")
    i: cython.Py_ssize_t
    count: cython.Py_ssize_t = len(words) // 8
    only: cython.longlong = -1
    found: list = []
    if len(publishers) == 1:
        only = next(iter(publishers))
    for i in range(count):
        if words[i * 8 + 6] == only or (only < 0 and words[i * 8 + 6] in publishers):
            found.append((i, words[i * 8], words[i * 8 + 2] | (cython.cast(cython.ulonglong, words[i * 8 + 3]) << 32)))
    return found
