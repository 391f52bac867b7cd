"""Kernel: the user properties that tell a subscriber where a message stands in the log, and who published it; and what
delivery looks for among those of a stored message: its expiry, and whether its publisher says its QoS.

docs/reference/replay.md and docs/reference/publishers.md"""

from typing import Protocol

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.rumq.mqtt.kernels.publish_properties import said_qos_at
else:
    from rumq.mqtt.kernels.publish_properties import said_qos_at

DAY_US = cython.declare(cython.longlong, 86_400_000_000)
TIME_BYTES = cython.declare(cython.Py_ssize_t, 27)
# What stands before the values, lengths included but for those of the numbers and of the partition.
OFFSET, LSN = b"\x26\x00\x0brumq-offset", b"\x26\x00\x08rumq-lsn"
PARTITION, TIME = b"\x26\x00\x0erumq-partition", b"\x26\x00\x09rumq-time\x00\x1b"
WORDS_BYTES = cython.declare(cython.Py_ssize_t, len(OFFSET) + len(LSN) + len(PARTITION) + len(TIME) + 6)


class NamesByNumber(Protocol):
    """Client ids by publisher number: of a partition, or of one chunk."""

    def get(self, number: int, default: bytes, /) -> bytes: ...


def pair(name: bytes, value: bytes) -> bytes:
    """One user property, encoded."""
    return b"\x26" + len(name).to_bytes(2, "big") + name + len(value).to_bytes(2, "big") + value


@cython.cfunc
@cython.inline
def digits_of(value: cython.ulonglong) -> cython.Py_ssize_t:
    """How many decimal digits it has."""
    count: cython.Py_ssize_t = 1
    while value >= 10:
        value = value // 10
        count += 1
    return count


@cython.cfunc
@cython.inline
def put_digits(
    out: cython.p_uchar, at: cython.Py_ssize_t, value: cython.ulonglong, width: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """With zeros in front; returns where they end."""
    i: cython.Py_ssize_t = at + width
    while i > at:
        i -= 1
        out[i] = 48 + value % 10
        value = value // 10
    return at + width


@cython.cfunc
@cython.inline
def put_bytes(out: cython.p_uchar, at: cython.Py_ssize_t, data: bytes) -> cython.Py_ssize_t:
    i: cython.Py_ssize_t
    for i in range(len(data)):
        out[at + i] = data[i]
    return at + len(data)


@cython.cfunc
def put_time(out: cython.p_uchar, at: cython.Py_ssize_t, ts_us: cython.longlong) -> cython.Py_ssize_t:
    """Microseconds since 1970 as an RFC 3339 time in UTC, `TIME_BYTES` long, without a look at any time zone."""
    days: cython.longlong = ts_us // DAY_US
    rest: cython.longlong = ts_us - days * DAY_US
    # Howard Hinnant's civil-from-days: years begin in March, so a leap day comes last.
    z: cython.longlong = days + 719468
    era: cython.longlong = z // 146097
    doe: cython.longlong = z - era * 146097
    yoe: cython.longlong = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy: cython.longlong = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp: cython.longlong = (5 * doy + 2) // 153
    month: cython.longlong = mp + 3 if mp < 10 else mp - 9
    second: cython.longlong = rest // 1_000_000
    at = put_digits(out, at, yoe + era * 400 + (1 if month <= 2 else 0), 4)
    out[at] = 45
    at = put_digits(out, at + 1, month, 2)
    out[at] = 45
    at = put_digits(out, at + 1, doy - (153 * mp + 2) // 5 + 1, 2)
    out[at] = 84
    at = put_digits(out, at + 1, second // 3600, 2)
    out[at] = 58
    at = put_digits(out, at + 1, second // 60 % 60, 2)
    out[at] = 58
    at = put_digits(out, at + 1, second % 60, 2)
    out[at] = 46
    at = put_digits(out, at + 1, rest % 1_000_000, 6)
    out[at] = 90
    return at + 1


def rfc3339(ts_us: int) -> bytes:
    """Microseconds since 1970, not before it, as an RFC 3339 time in UTC."""
    made = bytearray(TIME_BYTES)
    if cython.compiled:
        put_time(cython.cast(cython.p_uchar, PyByteArray_AS_STRING(made)), 0, ts_us)
    else:
        put_time(made, 0, ts_us)
    return bytes(made)


def location(located: bytes, topic_offset: cython.ulonglong, lsn: cython.ulonglong, ts_us: cython.longlong) -> bytes:
    """The user properties that tell a subscriber where a message stands in the log."""
    offset_size: cython.Py_ssize_t = digits_of(topic_offset)
    lsn_size: cython.Py_ssize_t = digits_of(lsn)
    size: cython.Py_ssize_t = WORDS_BYTES + offset_size + lsn_size + len(located) + TIME_BYTES
    made = bytearray(size)
    if cython.compiled:
        out: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(made))
    else:
        out = made
    at: cython.Py_ssize_t = put_bytes(out, 0, OFFSET)
    out[at], out[at + 1] = 0, offset_size
    at = put_digits(out, at + 2, topic_offset, offset_size)
    at = put_bytes(out, at, LSN)
    out[at], out[at + 1] = 0, lsn_size
    at = put_digits(out, at + 2, lsn, lsn_size)
    at = put_bytes(out, at, PARTITION)
    out[at], out[at + 1] = len(located) >> 8, len(located) & 255
    at = put_bytes(out, at + 2, located)
    put_time(out, put_bytes(out, at, TIME), ts_us)
    return bytes(made)


def published_by(publishers: NamesByNumber, number: int) -> bytes:
    """The user property that tells a subscriber who published; empty where the log does not name a publisher."""
    name = publishers.get(number, b"")
    return pair(b"rumq-publisher", name) if name else b""


@cython.cfunc
def expiry_at(
    frames: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the four bytes of the message expiry interval stand among checked properties, or -1."""
    kind: cython.uint
    while at < end:
        kind = frames[at]
        at += 1
        if kind == 0x02:
            return at
        if kind == 0x01:
            at += 1
        elif kind == 0x26:
            at += 2 + ((frames[at] << 8) | frames[at + 1])
            at += 2 + ((frames[at] << 8) | frames[at + 1])
        else:  # 0x03, 0x08, 0x09: two bytes of length
            at += 2 + ((frames[at] << 8) | frames[at + 1])
    return -1


@cython.cfunc
def says_qos(frames: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether the publisher of a message has set the property by which rumq brokers tell each other its QoS."""
    if cython.compiled:
        return said_qos_at(cython.address(frames[0]), at, end) >= 0
    return said_qos_at(frames, at, end) >= 0
