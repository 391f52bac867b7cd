"""Kernel: digests of values, and positions of the MQTT 5 properties of frames. MQTT 5.0, 2.2.2 and 3.3.2.3.

Works on bytes and arrays of positions. Knows no file, no Arrow."""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

FIRST = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
SECOND = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
THIRD = cython.declare(cython.ulonglong, 0x94D049BB133111EB)
ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mixed(word: cython.ulonglong) -> cython.ulonglong:
    """The finaliser of splitmix64: every input bit affects every output bit."""
    word = (word ^ (word >> 30)) * SECOND & ALL
    word = (word ^ (word >> 27)) * THIRD & ALL
    return word ^ (word >> 31)


def digest(lsns: object, starts: object, ends: object, data: object) -> int:
    """The sum, modulo 2**64, of a hash of each (lsn, value), independent of their order.

    lsns, starts, ends: int64, one per record; data: the value of record i is the bytes starts[i]..ends[i]
    """
    numbers: cython.const[cython.longlong][::1] = memoryview(lsns)
    begins: cython.const[cython.longlong][::1] = memoryview(starts)
    stops: cython.const[cython.longlong][::1] = memoryview(ends)
    bytes_in: cython.const[cython.uchar][::1] = memoryview(data)
    total: cython.ulonglong = 0
    state: cython.ulonglong
    word: cython.ulonglong
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    at: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    count: cython.Py_ssize_t = len(numbers)
    for i in range(count):
        at = begins[i]
        stop = stops[i]
        word = numbers[i]
        state = mixed(word + FIRST & ALL)
        word = stop - at
        state = (state ^ word) * FIRST & ALL
        while at < stop:
            word = 0
            if cython.compiled and at + 8 <= stop:
                memcpy(cython.address(word), cython.address(bytes_in[at]), 8)
            else:
                for j in range(min(8, stop - at)):
                    word |= cython.cast(cython.ulonglong, bytes_in[at + j]) << (8 * j)
            state = (state ^ word) * SECOND & ALL
            state ^= state >> 29
            at += 8
        total = total + mixed(state) & ALL
    return total


def find_properties(
    starts: object,
    payloads: object,
    flags: object,
    data: object,
    found: object,
    counts: object,
    pairs: object,
) -> int:
    """Positions of the properties of PUBLISH frames in `data`.

    starts, payloads: int64, start of frame i and of its payload
    flags: u16 of its row (docs/reference/log-format.md, "Row")
    found: int64, 8 per frame, output: start and end of content type, response topic, correlation data (-1: none),
    message expiry in seconds, payload format (-1: none)
    counts: int64, output: number of user properties of each frame
    pairs: int64, output up to its size: of each user property, in order, start and end of its name and of its value
    returns: total number of user properties
    """
    begins: cython.const[cython.longlong][::1] = memoryview(starts)
    ends: cython.const[cython.longlong][::1] = memoryview(payloads)
    marks: cython.const[cython.ushort][::1] = memoryview(flags)
    raw: cython.const[cython.uchar][::1] = memoryview(data)
    out: cython.longlong[::1] = memoryview(found)
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    size: cython.Py_ssize_t
    k: cython.Py_ssize_t
    users: cython.Py_ssize_t
    kind: cython.uint
    numbers: cython.longlong[::1] = memoryview(counts)
    places: cython.longlong[::1] = memoryview(pairs)
    room: cython.Py_ssize_t = len(places)
    total: cython.Py_ssize_t = 0
    for i in range(len(begins)):
        for k in range(8):
            out[8 * i + k] = -1
        users = 0
        if marks[i] & 32:
            at = begins[i] + 1
            stop = ends[i]
            while at < stop and raw[at] & 128:
                at += 1
            at += 1
            if at + 2 > stop:
                numbers[i] = 0
                continue
            at += 2 + (raw[at] << 8 | raw[at + 1])
            if marks[i] & 3:
                at += 2
            while at < stop and raw[at] & 128:
                at += 1
            at += 1
            while at < stop:
                kind = raw[at]
                at += 1
                if kind == 1:
                    if at + 1 > stop:
                        break
                    out[8 * i + 7] = raw[at]
                    at += 1
                elif kind == 2:
                    if at + 4 > stop:
                        break
                    out[8 * i + 6] = (
                        cython.cast(cython.longlong, raw[at]) << 24 | raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]
                    )
                    at += 4
                elif kind == 3 or kind == 8 or kind == 9:
                    if at + 2 > stop:
                        break
                    size = raw[at] << 8 | raw[at + 1]
                    at += 2
                    if at + size > stop:
                        break
                    k = 0 if kind == 3 else 2 if kind == 8 else 4
                    out[8 * i + k] = at
                    out[8 * i + k + 1] = at + size
                    at += size
                elif kind == 38:
                    if at + 2 > stop:
                        break
                    size = raw[at] << 8 | raw[at + 1]
                    k = at + 2 + size
                    if k + 2 > stop:
                        break
                    size = raw[k] << 8 | raw[k + 1]
                    if k + 2 + size > stop:
                        break
                    if 4 * total + 4 <= room:
                        places[4 * total] = at + 2
                        places[4 * total + 1] = k
                        places[4 * total + 2] = k + 2
                        places[4 * total + 3] = k + 2 + size
                    total += 1
                    users += 1
                    at = k + 2 + size
                elif kind == 11:  # a subscription identifier: not of what a client publishes, and of no use here
                    while at < stop and raw[at] & 128:
                        at += 1
                    at += 1
                else:
                    break  # no property that a PUBLISH has: what is behind it cannot be told apart
        numbers[i] = users
    return total
