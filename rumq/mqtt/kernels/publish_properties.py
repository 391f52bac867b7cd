"""Kernel: check the properties of a PUBLISH from a client. MQTT 5.0, 3.3.2.3 and 1.5.4."""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcmp

# rumq-qos = 1, of a message of QoS 1 that a bridge carries as QoS 2: docs/decisions/0074-a-bridge-raises-qos-1.md.
# rumq-qos = 2, of one of QoS 2 whose publisher has set either by itself.
RAISED, NOT_RAISED = b"\x26\x00\x08rumq-qos\x00\x011", b"\x26\x00\x08rumq-qos\x00\x012"
RAISED_BYTES = cython.declare(cython.Py_ssize_t, 14)


@cython.cfunc
@cython.inline
def u16(data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.uint:
    return (cython.cast(cython.uint, data[at]) << 8) | data[at + 1]


@cython.cfunc
@cython.inline
def utf8_fault(
    data: cython.pointer(cython.const[cython.uchar]), start: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.bint:
    """Whether the bytes are no UTF-8 string of MQTT 5.0, 1.5.4: ill-formed, a surrogate, or U+0000."""
    i: cython.Py_ssize_t = start
    b: cython.uint
    need: cython.Py_ssize_t
    low: cython.uint
    high: cython.uint
    while i < end:
        b = data[i]
        i += 1
        if b < 0x80:
            if b == 0:
                return True
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= b <= 0xDF:
            need = 1
        elif 0xE0 <= b <= 0xEF:
            need = 2
            if b == 0xE0:
                low = 0xA0
            elif b == 0xED:
                high = 0x9F
        elif 0xF0 <= b <= 0xF4:
            need = 3
            if b == 0xF0:
                low = 0x90
            elif b == 0xF4:
                high = 0x8F
        else:
            return True
        if i + need > end:
            return True
        if data[i] < low or data[i] > high:
            return True
        i += 1
        need -= 1
        while need > 0:
            if data[i] < 0x80 or data[i] > 0xBF:
                return True
            i += 1
            need -= 1
    return False


@cython.cfunc
def string_end(
    data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """The end of the UTF-8 string at `at`, or -1."""
    stop: cython.Py_ssize_t
    if at + 2 > end:
        return -1
    stop = at + 2 + u16(data, at)
    if stop > end or utf8_fault(data, at + 2, stop):
        return -1
    return stop


@cython.cclass
class Found:
    """What a PUBLISH has: a topic alias and where, an expiry; text: the fault. Its fields are typed in the .pxd.

    users_at, users_end: of the user properties, -1: there is none; users_apart: others stand between them"""


@cython.cfunc
def walk_properties(
    data: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    found: Found,
) -> cython.int:
    """Check the properties of a PUBLISH from a client (MQTT 5.0, 3.3.2.3); 0, or the reason code."""
    seen: cython.uint = 0
    bit: cython.uint
    kind: cython.uint
    stop: cython.Py_ssize_t
    i: cython.Py_ssize_t
    found.alias = 0
    found.alias_at = -1
    found.expiry = False
    found.users_at = -1
    found.users_end = -1
    found.users_apart = False
    while at < end:
        kind = data[at]
        at += 1
        bit = 0
        if kind == 0x26:  # user property, may repeat
            if found.users_at < 0:
                found.users_at = at - 1
            elif found.users_end != at - 1:
                found.users_apart = True
            at = string_end(data, at, end)
            if at >= 0:
                at = string_end(data, at, end)
            if at < 0:
                found.text = "a user property of a PUBLISH is malformed"
                return 0x81
            found.users_end = at
            continue
        if kind == 0x01:
            bit = 1
            if at >= end:
                found.text = "a PUBLISH ends inside its payload format indicator"
                return 0x81
            if data[at] > 1:
                found.text = "the payload format indicator of a PUBLISH is neither 0 nor 1"
                return 0x82
            stop = at + 1
        elif kind == 0x02:
            bit = 2
            stop = at + 4
            found.expiry = True
        elif kind == 0x03:
            bit = 4
            stop = string_end(data, at, end)
        elif kind == 0x08:
            bit = 8
            stop = string_end(data, at, end)
            if stop >= 0:
                if stop == at + 2:
                    found.text = "the response topic of a PUBLISH is empty"
                    return 0x82
                for i in range(at + 2, stop):
                    if data[i] == 0x23 or data[i] == 0x2B:
                        found.text = "the response topic of a PUBLISH has a wildcard"
                        return 0x82
        elif kind == 0x09:
            bit = 16
            stop = at + 2
            if stop <= end:
                stop += u16(data, at)
        elif kind == 0x23:
            bit = 32
            stop = at + 2
            if stop <= end:
                found.alias = u16(data, at)
                found.alias_at = at - 1
        elif kind == 0x0B:
            found.text = "a PUBLISH from a client carries a subscription identifier"
            return 0x82
        else:
            found.text = "a PUBLISH carries a property that does not belong there"
            return 0x81
        if stop < 0 or stop > end:
            found.text = "a property of a PUBLISH is malformed"
            return 0x81
        if seen & bit:
            found.text = "a property that may appear once appears twice in a PUBLISH"
            return 0x82
        seen |= bit
        at = stop
    return 0


@cython.cfunc
def said_qos_at(
    data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the last `RAISED` or `NOT_RAISED` stands among the checked properties of a PUBLISH; -1: nowhere.

    Those before it are a publisher's own."""
    kind: cython.uint
    stop: cython.Py_ssize_t
    wanted: bytes = RAISED
    name: cython.pointer(cython.const[cython.uchar]) = wanted
    is_it: cython.bint
    found: cython.Py_ssize_t = -1
    while at < end:
        kind = data[at]
        if kind == 0x26:
            stop = at + 3 + u16(data, at + 1)
            stop += 2 + u16(data, stop)
            if stop - at == RAISED_BYTES and 0x31 <= data[stop - 1] <= 0x32:
                if cython.compiled:
                    is_it = memcmp(cython.address(data[at]), name, RAISED_BYTES - 1) == 0
                else:
                    is_it = data[at : stop - 1] == RAISED[:-1]
                if is_it:
                    found = at
            at = stop
        elif kind == 0x01:
            at += 2
        elif kind == 0x02:
            at += 5
        elif kind == 0x23:
            at += 3
        else:  # 0x03, 0x08, 0x09: two bytes of length
            at += 3 + u16(data, at + 1)
    return found
