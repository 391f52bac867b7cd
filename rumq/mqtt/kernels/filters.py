"""Kernel: add a prefix to each filter of a SUBSCRIBE or an UNSUBSCRIBE. MQTT 5.0, 3.8.3 and 3.10.3.

One packet may have a million filters. Only their lengths are read here; the decoder of the result checks them."""

import cython

BROKEN = cython.declare(cython.Py_ssize_t, -1)
TOO_LONG = cython.declare(cython.Py_ssize_t, -2)
FILTER_BYTES_MAX = cython.declare(cython.Py_ssize_t, 65535)


def measured(
    body: bytes, at: cython.Py_ssize_t, options: cython.Py_ssize_t, more: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """How many filters `body[at:]` has; -1 where it ends inside one, -2 where one has no room for `more` bytes.

    options: how many bytes follow each filter: 1 in a SUBSCRIBE, 0 in an UNSUBSCRIBE"""
    data: cython.const[cython.uchar][::1] = memoryview(body)
    end: cython.Py_ssize_t = len(body)
    length: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    while at < end:
        if end - at < 2:
            return BROKEN
        length = data[at] << 8 | data[at + 1]
        at += 2 + length + options
        if at > end:
            return BROKEN
        if length + more > FILTER_BYTES_MAX:
            return TOO_LONG
        count += 1
    return count


def prefixed(body: bytes, at: cython.Py_ssize_t, options: cython.Py_ssize_t, prefix: bytes) -> bytes:
    """`body[at:]` with `prefix` before each filter; of a share and of a replay before the part that is a filter.

    What is empty stays so: nobody may subscribe to that.
    body: what `measured` has found whole"""
    data: cython.const[cython.uchar][::1] = memoryview(body)
    end: cython.Py_ssize_t = len(body)
    more: cython.Py_ssize_t = len(prefix)
    begin: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    put: cython.Py_ssize_t
    length: cython.Py_ssize_t
    out = bytearray()
    while at < end:
        length = data[at] << 8 | data[at + 1]
        begin = at + 2
        stop = begin + length
        put = begin
        if length and data[begin] == 36:  # "$"
            put = behind_the_name(body, begin, stop)
        if put < stop:
            length += more
        out.append(length >> 8)
        out.append(length & 255)
        out += body[begin:put]
        if put < stop:
            out += prefix
        at = stop + options
        out += body[put:at]
    return bytes(out)


@cython.cfunc
def behind_the_name(body: bytes, begin: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the filter of `$share/<name>/<filter>` or `$log/<from>/<filter>` begins; `begin` of any other."""
    slash: cython.Py_ssize_t
    if body.startswith(b"$share/", begin, stop):
        slash = body.find(b"/", begin + 7, stop)
    elif body.startswith(b"$log/", begin, stop):
        slash = body.find(b"/", begin + 5, stop)
    else:
        return begin
    return begin if slash < 0 else slash + 1
