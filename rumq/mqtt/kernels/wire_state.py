"""Kernel: the state of one connection for the walk over its bytes, and how the last walk ended."""

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize

UNSET: Any = None  # of fields typed in the pxd; mypy would take None for their only value

# Why a walk stopped: `Wire.stop`.
MORE = 0  # the rest is not a whole packet yet, or there is none
OTHER = 1  # a packet for the ordinary decoder
TOPIC = 2  # a PUBLISH on a topic that `topics` does not have: add it or refuse it, then call again
PUBLISHER = 3  # the publisher has no number in partition `Wire.partition` yet: give one, then call again
FULL = 4  # a buffer of the batch is full: grow it, then call again
RETAIN = 6  # a retained PUBLISH on a topic whose number says NO_RETAIN: take it or refuse it
UNDECIDED = 7  # a PUBLISH of QoS 2: `Wire.packet_id` in `Wire.partition` may be stored already
FAULT = 5  # malformed or forbidden: `Wire.fault` is the reason code, `Wire.fault_text` says what was seen


@cython.no_gc
@cython.cclass
class Wire:
    """One connection. Its fields are typed in wire_state.pxd.

    The collector does not look into it, which saves its 16 bytes: nothing that it holds leads back to it."""

    def __init__(self, v5: bool, packet_bytes_max: int, receive_maximum: int, alias_max: int) -> None:
        self.v5 = v5
        self.packet_bytes_max = packet_bytes_max
        self.qos_max = 2
        self.retain_available = True
        self.alias_max = alias_max
        self.aliases = UNSET
        self.publishers = UNSET
        self.qos2_open = UNSET
        self.receive_maximum = receive_maximum
        self.unacknowledged = 0
        self.acks = UNSET  # answers that leave at the end of the step; None: none
        self.ack_parts = 0
        self.pubacks = 0
        self.window = UNSET
        self.published = 0
        self.others = 0  # packets that came and are no new PUBLISH
        self.answers = 0  # packets that went out and are no PUBLISH
        self.touched = 0  # bit p: something was published to partition p
        self.journal_part = 0  # of a durable session: which bit of `ack_parts` stands for its journal; 0: of none
        self.session_tag = 0  # says in the log of which session an inbound QoS 2 message is
        self.noted = UNSET  # acknowledgements of a durable session, u32 each: head << 16 | packet id
        self.restores_qos = False  # messages of QoS 2 may say that they are of QoS 1: `publish_properties`
        self.own = False  # the broker's own messages, which are taken in any case
        # Which inbound QoS 2 messages are stored is not known of every shard (`rumq.shards.recovery.undecided`).
        self.undecided = False
        self.passed = 0  # the packet id of the message that is taken all the same
        self.packet_id = 0
        self.stop = MORE
        self.fault = 0
        self.fault_text = UNSET
        self.topic = UNSET
        self.partition = 0
        self.frame_bytes = 0
        self.last_key = UNSET
        self.last_value = 0

    def forget_topics(self) -> None:
        """Look every topic up again: what this connection may publish to has changed."""
        self.last_key = None

    def release(self, pid: cython.Py_ssize_t) -> bool:
        """Take PUBREL: forget an inbound QoS 2 packet id. False: it was not open."""
        bits: bytearray = self.qos2_open
        if bits is None or not bits[pid >> 3] >> (pid & 7) & 1:
            return False
        bits[pid >> 3] &= ~(1 << (pid & 7)) & 255
        if self.unacknowledged > 0:
            self.unacknowledged -= 1
        return True

    def answer(self, packet: object) -> None:
        """Put a whole packet behind the answers that leave together."""
        if self.acks is None:
            self.acks = bytearray(packet)
        else:
            self.acks += packet

    def refuse(self, fault: cython.int, text: object) -> None:
        self.stop = FAULT
        self.fault = fault
        self.fault_text = text


def journal_bit(wire: Wire) -> int:
    """The bit of `ack_parts` that stands for the journal; not to be asked if there is none."""
    one: cython.ulonglong = 1
    return one << wire.journal_part


@cython.cfunc
def acks_of(wire: Wire) -> bytearray:
    """`Wire.acks`, to be added to."""
    if wire.acks is None:
        wire.acks = PyByteArray_FromStringAndSize(cython.NULL, 0) if cython.compiled else bytearray()
    return wire.acks


@cython.cfunc
def noted_of(wire: Wire) -> bytearray:
    """`Wire.noted`, to be added to."""
    if wire.noted is None:
        wire.noted = bytearray()
    return wire.noted


def open_tags(wire: Wire) -> list[int]:
    """The packet ids of inbound QoS 2 messages that wait for PUBREL."""
    bits = wire.qos2_open
    if bits is None:
        return []
    return [pid for pid in range(1, 65536) if bits[pid >> 3] >> (pid & 7) & 1]
