"""Kernel: which messages of a batch are traced, and the user property `traceparent` in their frames.

https://www.w3.org/TR/trace-context/, https://w3c.github.io/trace-context-mqtt/; rows and frames:
docs/reference/log-format.md. No clock here: the time is an argument."""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcmp
    from cython.cimports.rumq.mqtt.kernels.buffers import octets
    from cython.cimports.rumq.mqtt.kernels.buffers import words as words_at

ROW_PROPERTIES = cython.declare(cython.uint, 32)
CHUNK_V5 = cython.declare(cython.uint, 2)
VALUE_BYTES = cython.declare(cython.Py_ssize_t, 55)  # of version 00; later ones may be longer
NAME = b"traceparent"
STATE = b"tracestate"
NAME_BYTES = cython.declare(cython.Py_ssize_t, 11)
ABSENT = cython.declare(cython.Py_ssize_t, -1)
SEVERAL = cython.declare(cython.Py_ssize_t, -2)


@cython.cclass
class Sampler:
    """Decides per batch. every: one message in so many that carry no context; per_second_max: traces in a second.

    left: messages until the next one that is picked; budget: traces that this second, up to `until`, still has
    over: messages that would have been traced but for the budget
    carried: rows of the batch whose context is sampled; waits: the tracer wants to be called at the end of the turn
    Its fields are typed in the .pxd."""

    def __init__(self, every: int, per_second_max: int) -> None:
        self.every, self.per_second_max = every, per_second_max
        self.left = every
        self.budget = 0
        self.until = 0.0
        self.over = 0
        self.carried: list = []
        self.waits = False

    @cython.ccall
    def wants(
        self, rows: object, frames: object, count: cython.Py_ssize_t, flags: cython.uint, now: cython.double
    ) -> cython.bint:
        """Whether something of a batch is to be traced. now: monotonic seconds. Cost: a look at each MQTT 5 row"""
        if now >= self.until:
            self.until = now + 1.0
            self.budget = self.per_second_max
        if self.carried:
            self.carried = []
        self.left -= count
        if flags & CHUNK_V5:
            self.look(rows, frames, count)
        if self.left > 0:
            return len(self.carried) > 0
        if self.budget <= len(self.carried):
            self.over += 1 - self.left // self.every
            self.left = self.every
            return len(self.carried) > 0
        return True

    @cython.ccall
    def look(self, rows: object, frames: object, count: cython.Py_ssize_t) -> None:
        """Note the rows whose context is sampled, as many as the budget allows."""
        words: cython.p_uint
        src: cython.p_uchar
        if cython.compiled:
            words, src = words_at(rows), octets(frames)
        else:
            words, src = memoryview(rows).cast("I"), frames
        found: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t
        i: cython.Py_ssize_t
        for i in range(count):
            if words[i * 8 + 7] & ROW_PROPERTIES:
                at = value_at(src, words[i * 8 + 1], words[i * 8 + 7] & 3)
                if at >= 0 and is_sampled(src, at):
                    if found < self.budget:
                        self.carried.append(i)
                        found += 1
                    else:
                        self.over += 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_sampled(src: cython.p_uchar, at: cython.Py_ssize_t) -> cython.bint:
    """Whether the value at `at`, which begins with its length, is long enough and has the sampled flag."""
    size: cython.Py_ssize_t = (src[at] << 8) | src[at + 1]
    digit: cython.uint
    if size < VALUE_BYTES:
        return False
    digit = src[at + 2 + VALUE_BYTES - 1]
    if 48 <= digit <= 57:
        return digit & 1 == 1
    return digit == 98 or digit == 100 or digit == 102  # b, d, f


@cython.cfunc
@cython.exceptval(check=False)
def properties_at(src: cython.p_uchar, start: cython.Py_ssize_t, qos: cython.uint) -> cython.Py_ssize_t:
    """Where the property length of a frame stands, or would stand before MQTT 5."""
    at: cython.Py_ssize_t = start + 1
    while src[at] >= 128:
        at += 1
    at += 1
    at += 2 + ((src[at] << 8) | src[at + 1])
    return at + 2 if qos else at


@cython.cfunc
@cython.exceptval(check=False)
def value_at(src: cython.p_uchar, start: cython.Py_ssize_t, qos: cython.uint) -> cython.Py_ssize_t:
    """Where the value of the only `traceparent` of an MQTT 5 frame stands, at its length; ABSENT, or SEVERAL."""
    at: cython.Py_ssize_t = properties_at(src, start, qos)
    size: cython.Py_ssize_t = 0
    shift: cython.int = 0
    end: cython.Py_ssize_t
    found: cython.Py_ssize_t = ABSENT
    kind: cython.uint
    length: cython.Py_ssize_t
    while src[at] >= 128:
        size |= cython.cast(cython.Py_ssize_t, src[at] & 0x7F) << shift
        shift += 7
        at += 1
    size |= cython.cast(cython.Py_ssize_t, src[at]) << shift
    at += 1
    end = at + size
    while at < end:
        kind = src[at]
        at += 1
        if kind == 0x01:
            at += 1
        elif kind == 0x02:
            at += 4
        elif kind == 0x26:
            length = (src[at] << 8) | src[at + 1]
            if length == NAME_BYTES and is_name(src, at + 2):
                if found != ABSENT:
                    return SEVERAL
                found = at + 2 + length
            at += 2 + length
            at += 2 + ((src[at] << 8) | src[at + 1])
        else:  # 0x03, 0x08, 0x09: two bytes of length
            at += 2 + ((src[at] << 8) | src[at + 1])
    return found


@cython.cfunc
@cython.inline
def is_name(src: cython.p_uchar, at: cython.Py_ssize_t) -> cython.bint:
    if cython.compiled:
        return memcmp(cython.address(src[at]), b"traceparent", NAME_BYTES) == 0
    return bytes(src[at : at + 11]) == NAME


def contexts(frame: bytes, qos: int) -> tuple[bytes | None, bytes]:
    """(traceparent, tracestate) of an MQTT 5 frame: None without a traceparent, b"" for several; b"" without a state.

    Several tracestates are one list (W3C Trace Context, 3.3.1)"""
    pairs = list(user_properties(frame, qos))
    parents = [value for name, value in pairs if name == NAME]
    state = b",".join(value for name, value in pairs if name == STATE)
    if not parents:
        return None, state
    return (parents[0] if len(parents) == 1 else b""), state


def user_properties(frame: bytes, qos: int) -> list[tuple[bytes, bytes]]:
    """Names and values, in order."""
    at, end = properties_of(frame, qos)
    found = []
    while at < end:
        kind = frame[at]
        at += 1
        if kind == 0x01:
            at += 1
        elif kind == 0x02:
            at += 4
        else:
            stop = at + 2 + int.from_bytes(frame[at : at + 2], "big")
            name, at = frame[at + 2 : stop], stop
            if kind == 0x26:
                stop = at + 2 + int.from_bytes(frame[at : at + 2], "big")
                found.append((name, frame[at + 2 : stop]))
                at = stop
    return found


def properties_of(frame: bytes, qos: int) -> tuple[int, int]:
    """Where the properties of an MQTT 5 frame begin and end."""
    at = int(properties_at(frame, 0, qos))
    size = shift = 0
    while True:
        byte = frame[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 128:
            return at, at + size


def stamped(frame: bytes, qos: int, v5: bool, value: bytes) -> tuple[bytes, int]:
    """A frame of MQTT 5 with this traceparent in the place of its own, and where its payload begins.

    It has none, or one of any length; a frame before MQTT 5 (v5 false) becomes one of MQTT 5"""
    begin = int(properties_at(frame, 0, qos))
    at = int(value_at(frame, 0, qos)) if v5 else -1
    if v5:
        start, end = properties_of(frame, qos)
    else:
        start = end = begin
    properties = frame[start:end]
    if at >= 0:
        stop = at + 2 + int.from_bytes(frame[at : at + 2], "big")
        properties = frame[start:at] + len(value).to_bytes(2, "big") + value + frame[stop:end]
    else:
        properties += b"\x26" + len(NAME).to_bytes(2, "big") + NAME + len(value).to_bytes(2, "big") + value
    body_at = 1
    while frame[body_at] >= 128:
        body_at += 1
    head = frame[body_at + 1 : begin] + varint(len(properties)) + properties
    size = varint(len(head) + len(frame) - end)
    return frame[:1] + size + head + frame[end:], 1 + len(size) + len(head)


def patched(data: bytes, start: int, qos: int, value: bytes) -> bytes | None:
    """Packets with another traceparent in the one that begins at `start`; None where its own has another length."""
    at = int(value_at(data, start, qos))
    if at < 0 or int.from_bytes(data[at : at + 2], "big") != len(value):
        return None
    return data[: at + 2] + value + data[at + 2 + len(value) :]


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def move_frames(rows: bytearray, count: int, grown: list[tuple[int, int]]) -> None:
    """Shift the frame positions behind frames that have grown. grown: (row, bytes) in the order of rows"""
    words: cython.p_uint
    if cython.compiled:
        words = words_at(rows)
    else:
        words = memoryview(rows).cast("I")
    i: cython.Py_ssize_t
    by: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    at: cython.Py_ssize_t
    for at in range(len(grown)):
        by += grown[at][1]
        first = grown[at][0] + 1
        stop = grown[at + 1][0] + 1 if at + 1 < len(grown) else count
        for i in range(first, stop):
            words[i * 8 + 1] += by
