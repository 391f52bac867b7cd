"""Kernel: the user property of a message of QoS 1 that a bridge carries as QoS 2, and where a message has it.

docs/decisions/0074-a-bridge-raises-qos-1.md"""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcmp

RAISED = b"\x26\x00\x08rumq-qos\x00\x011"  # rumq-qos = 1
RAISED_BYTES = cython.declare(cython.Py_ssize_t, 14)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def u16(data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    return (cython.cast(cython.Py_ssize_t, data[at]) << 8) | data[at + 1]


@cython.cfunc
def raised_at(
    data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the property stands among the checked properties of a PUBLISH, `RAISED_BYTES` long; -1: nowhere."""
    kind: cython.uint
    stop: cython.Py_ssize_t
    wanted: bytes = RAISED
    raised: cython.pointer(cython.const[cython.uchar]) = wanted
    is_raised: cython.bint
    while at < end:
        kind = data[at]
        if kind == 0x26:
            stop = at + 3 + u16(data, at + 1)
            stop += 2 + u16(data, stop)
            if stop - at == RAISED_BYTES:
                if cython.compiled:
                    is_raised = memcmp(cython.address(data[at]), raised, RAISED_BYTES) == 0
                else:
                    is_raised = data[at:stop] == RAISED
                if is_raised:
                    return at
            at = stop
        elif kind == 0x01:
            at += 2
        elif kind == 0x02:
            at += 5
        elif kind == 0x23:
            at += 3
        else:  # 0x03, 0x08, 0x09: two bytes of length
            at += 3 + u16(data, at + 1)
    return -1
