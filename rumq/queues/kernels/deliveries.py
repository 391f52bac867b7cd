"""Kernel: PUBLISH packets of QoS 1 from the broker as messages for consumers. MQTT 5.0, 3.3.

What `rumq.mqtt.decode` and `packets.delivered` make of a packet, at a tenth of the cost: the packets are the broker's
own, so they are cut, not judged. Any other packet, and one with a property that messages of queues do not have, is left
to the decoder."""

import cython

from rumq.queues.rules.messages import Delivered
from rumq.queues.rules.names import MessageId, split_topic

NEVER = float("inf")
EXPIRY = cython.declare(cython.int, 0x02)
CONTENT_TYPE = cython.declare(cython.int, 0x03)
USER = cython.declare(cython.int, 0x26)
TOPICS_MAX = 100_000  # whose names are remembered
# As a NamedTuple makes itself, without the call of a Python function for each.
new = tuple.__new__
NO_HEADERS: tuple = ()


@cython.cfunc
@cython.inline
def text(data: bytes, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> str:
    return str(data[at : at + size], "utf-8")


@cython.cfunc
@cython.inline
def is_own(buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.bint:
    """Whether a name begins with `rumq-`."""
    return buf[at] == 114 and buf[at + 1] == 117 and buf[at + 2] == 109 and buf[at + 3] == 113 and buf[at + 4] == 45


@cython.cfunc
def number(buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.longlong:
    """Digits as a number; -1 for anything else."""
    value: cython.longlong = 0
    i: cython.Py_ssize_t
    if size < 1 or size > 18:
        return -1
    for i in range(at, at + size):
        if buf[i] < 48 or buf[i] > 57:
            return -1
        value = value * 10 + (buf[i] - 48)
    return value


@cython.cfunc
def micros(buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.longlong:
    """µs since 1970 of a time as the broker writes it, 2026-11-27T07:45:01.000123Z; 0 for anything else."""
    if size != 27 or buf[at + 4] != 45 or buf[at + 10] != 84 or buf[at + 19] != 46:
        return 0
    year: cython.longlong = number(buf, at, 4)
    month: cython.longlong = number(buf, at + 5, 2)
    day: cython.longlong = number(buf, at + 8, 2)
    # Howard Hinnant's days-from-civil: years begin in March, so a leap day comes last.
    if month <= 2:
        year -= 1
        month += 12
    yoe: cython.longlong = year % 400
    doe: cython.longlong = yoe * 365 + yoe // 4 - yoe // 100 + (153 * (month - 3) + 2) // 5 + day - 1
    days: cython.longlong = (year // 400) * 146_097 + doe - 719_468
    seconds: cython.longlong = number(buf, at + 11, 2) * 3600 + number(buf, at + 14, 2) * 60 + number(buf, at + 17, 2)
    return (days * 86_400 + seconds) * 1_000_000 + number(buf, at + 20, 6)


def cut(data: bytes, pos: cython.Py_ssize_t, topics: dict, out: list) -> int:
    """Take whole packets of `data` from `pos` on; returns the position of the first one not taken.

    topics: topic of a queue by that of MQTT, which grows; out: (message, packet id, seconds until it expires) is added
    """
    buf: cython.const[cython.uchar][::1] = memoryview(data)
    end: cython.Py_ssize_t = len(buf)
    size: cython.Py_ssize_t
    at: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    length: cython.Py_ssize_t
    props_end: cython.Py_ssize_t
    name_len: cython.Py_ssize_t
    value_at: cython.Py_ssize_t
    shift: cython.int
    byte: cython.uint
    kind: cython.uint
    packet_id: cython.uint
    offset: cython.longlong
    dead_tries: cython.longlong
    time_us: cython.longlong
    while pos < end:
        if buf[pos] & 0xF6 != 0x32:  # PUBLISH of QoS 1, whatever DUP and RETAIN
            return pos
        size = shift = 0
        at = pos + 1
        while True:
            if at >= end:
                return pos
            byte = buf[at]
            at += 1
            size |= cython.cast(cython.Py_ssize_t, byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 21:
                return pos
        stop = at + size
        if stop > end or size < 2:
            return pos
        length = (buf[at] << 8) | buf[at + 1]
        if at + 4 + length >= stop:
            return pos
        topic_key = data[at + 2 : at + 2 + length]
        at += 2 + length
        packet_id = (buf[at] << 8) | buf[at + 1]
        at += 2
        length = shift = 0
        while True:
            if at >= stop or shift > 21:
                return pos
            byte = buf[at]
            at += 1
            length |= cython.cast(cython.Py_ssize_t, byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        props_end = at + length
        if props_end > stop:
            return pos
        offset = -1
        dead_tries = time_us = 0
        key: object = None
        origin: object = ""
        content_type: object = ""
        headers: list = None
        expiry: object = NEVER
        while at < props_end:
            kind = buf[at]
            at += 1
            if kind == EXPIRY:
                if at + 4 > props_end:
                    return pos
                expiry = float(
                    (cython.cast(cython.longlong, buf[at]) << 24)
                    | (buf[at + 1] << 16)
                    | (buf[at + 2] << 8)
                    | buf[at + 3]
                )
                at += 4
                continue
            if kind != CONTENT_TYPE and kind != USER:
                return pos
            if at + 2 > props_end:
                return pos
            name_len = (buf[at] << 8) | buf[at + 1]
            at += 2
            if at + name_len > props_end:
                return pos
            if kind == CONTENT_TYPE:
                content_type = text(data, at, name_len)
                at += name_len
                continue
            value_at = at + name_len
            if value_at + 2 > props_end:
                return pos
            length = (buf[value_at] << 8) | buf[value_at + 1]
            value_at += 2
            if value_at + length > props_end:
                return pos
            if name_len < 5 or not is_own(buf, at):
                if headers is None:
                    headers = []
                headers.append((text(data, at, name_len), text(data, value_at, length)))
            else:
                name: bytes = data[at : at + name_len]
                if name == b"rumq-offset":
                    offset = number(buf, value_at, length)
                elif name == b"rumq-time":
                    time_us = micros(buf, value_at, length)
                elif name == b"rumq-key":
                    key = text(data, value_at, length)
                elif name == b"rumq-origin":
                    origin = text(data, value_at, length)
                elif name == b"rumq-tries":
                    dead_tries = number(buf, value_at, length)
            at = value_at + length
        if offset < 0:
            return pos  # it has no id
        topic = topics.get(topic_key)
        if topic is None:
            if len(topics) >= TOPICS_MAX:
                topics.clear()
            topic = topics[topic_key] = split_topic(topic_key.decode())[1]
        identity = new(MessageId, (topic, offset + 1))
        payload = data[props_end:stop]
        told = tuple(headers) if headers is not None else NO_HEADERS
        out.append(
            (
                new(Delivered, (identity, payload, 1, time_us, key, told, content_type, origin, dead_tries)),
                packet_id,
                expiry,
            )
        )
        pos = stop
    return pos
