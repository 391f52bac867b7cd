"""Kernel: PUBACK, PUBREC, PUBREL and PUBCOMP in their short forms, read and written. MQTT 5.0, 3.4 to 3.7."""

import cython

from rumq.mqtt.kernels.wire_state import Wire, journal_bit

if cython.compiled:
    from cython.cimports.cpython.bytearray import (
        PyByteArray_AS_STRING,
        PyByteArray_GET_SIZE,
        PyByteArray_Resize,
    )
    from cython.cimports.rumq.mqtt.kernels.wire_state import Wire, acks_of, journal_bit, noted_of
else:
    from rumq.mqtt.kernels.wire_state import acks_of, noted_of


@cython.cfunc
def put_ack(acks: bytearray, head: cython.uint, pid: cython.uint) -> cython.void:
    put_four(acks, head, 2, pid >> 8, pid & 255)


@cython.cfunc
@cython.inline
def note(noted: bytearray, head: cython.uint, pid: cython.uint) -> cython.void:
    put_four(noted, pid & 255, pid >> 8, head, 0)


@cython.cfunc
def put_four(
    out: bytearray, first: cython.uchar, second: cython.uchar, third: cython.uchar, fourth: cython.uchar
) -> cython.void:
    if cython.compiled:
        size: cython.Py_ssize_t = PyByteArray_GET_SIZE(out)
        PyByteArray_Resize(out, size + 4)
        at: cython.p_char = PyByteArray_AS_STRING(out) + size
        at[0], at[1], at[2], at[3] = first, second, third, fourth
    else:
        out.extend((first, second, third, fourth))


@cython.cfunc
def put_some(acks: bytearray, packet: bytes) -> cython.void:
    acks += packet


@cython.cfunc
def short_ack(
    wire: Wire,
    head: cython.uint,
    buf: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    rem: cython.Py_ssize_t,
) -> cython.int:
    """Take one acknowledgement of two or three bytes; 1 leaves it to the decoder."""
    pid: cython.uint = (buf[at] << 8) | buf[at + 1]
    code: cython.int
    if pid == 0 or (rem == 3 and buf[at + 2] != 0):
        return 1
    if head == 0x62:  # PUBREL
        wire.answers += 1
        if wire.release(pid):
            put_ack(acks_of(wire), 0x70, pid)
            if wire.journal_part:
                # Before PUBCOMP: the client may use the packet id again after it.
                note(noted_of(wire), 0x62, pid)
                wire.ack_parts |= journal_bit(wire)
        elif wire.undecided:  # it may be of a message that is stored where nobody answers yet
            wire.answers -= 1
            return 1
        elif wire.v5:
            put_some(acks_of(wire), bytes((0x70, 3, pid >> 8, pid & 255, 0x92)))
        else:
            put_ack(acks_of(wire), 0x70, pid)
        return 0
    if head != 0x40 and head != 0x50 and head != 0x70:
        return 1
    if wire.window is None:
        code = -1
    else:
        code = wire.window.acknowledge(head, pid)
    if code >= 0 and wire.journal_part:
        note(noted_of(wire), head, pid)
        if head == 0x50:  # before PUBREL: the client forgets the message with it
            wire.ack_parts |= journal_bit(wire)
    if head == 0x50:
        wire.answers += 1
        if code >= 0:
            put_ack(acks_of(wire), 0x62, pid)
        elif wire.v5:
            put_some(acks_of(wire), bytes((0x62, 3, pid >> 8, pid & 255, 0x92)))
        else:
            put_ack(acks_of(wire), 0x62, pid)
    return 0
