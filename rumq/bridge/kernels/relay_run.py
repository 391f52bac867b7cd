"""Kernel: what a bridge relays in runs: ordinary PUBLISH packets and acknowledgements, from one side to the other.

MQTT 5.0, 3.3 to 3.7. It walks whole packets of what a socket had. Ordinary is what needs no decision: a topic that is
relayed, a message that the target takes as it is, an acknowledgement that says yes. At any other packet, and at a
fault, the walk stops before it and changes nothing: `rumq.bridge.relay` decides on packets, and is the oracle of what
is done here. Packet ids stay the same (docs/decisions/0071-a-bridge-relays-two-sessions.md)."""

from typing import Any

import cython

from rumq.mqtt.kernels.publish_properties import Found

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcmp, memcpy
    from cython.cimports.rumq.mqtt.kernels.publish_properties import Found, walk_properties
else:
    from rumq.mqtt.kernels.publish_properties import walk_properties

VIA = b"\x26\x00\x08rumq-via"  # the beginning of a user property, docs/guides/bridges.md
VIA_BYTES = cython.declare(cython.Py_ssize_t, 11)
FIRST_BYTES = cython.declare(cython.Py_ssize_t, 4096)
KEPT_BYTES = cython.declare(cython.Py_ssize_t, 1 << 20)  # a larger buffer is given up behind its call
NO_MATCHING_SUBSCRIBERS = cython.declare(cython.uint, 0x10)
# What `way_at` says instead of a place.
PASSED = cython.declare(cython.Py_ssize_t, -1)  # the message has the source's id already
UNDECIDED = cython.declare(cython.Py_ssize_t, -2)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def u16(data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.uint:
    return (cython.cast(cython.uint, data[at]) << 8) | data[at + 1]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def varint_end(
    data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Behind the variable byte integer; -1: it is not whole, or none in its shortest form."""
    i: cython.Py_ssize_t
    for i in range(at, min(end, at + 4)):
        if data[i] < 0x80:
            return i + 1 if data[i] or i == at else -1
    return -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def varint_value(
    data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    value: cython.Py_ssize_t = 0
    while stop > at:
        stop -= 1
        value = (value << 7) | (data[stop] & 0x7F)
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def varint_size(value: cython.Py_ssize_t) -> cython.Py_ssize_t:
    return 1 if value < 128 else 2 if value < 16_384 else 3 if value < 2_097_152 else 4


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_varint(out: cython.p_uchar, at: cython.Py_ssize_t, value: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while value >= 128:
        out[at] = (value & 127) | 128
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def copy(
    out: cython.p_uchar, at: cython.Py_ssize_t, data: cython.pointer(cython.const[cython.uchar]),
    start: cython.Py_ssize_t, n: cython.Py_ssize_t,
) -> cython.Py_ssize_t:  # fmt: skip
    """Returns where the copy ends."""
    if cython.compiled:
        memcpy(cython.address(out[at]), cython.address(data[start]), n)
    else:
        out[at : at + n] = data[start : start + n]
    return at + n


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def same(
    a: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t,
    b: cython.pointer(cython.const[cython.uchar]), n: cython.Py_ssize_t,
) -> cython.bint:  # fmt: skip
    if cython.compiled:
        return memcmp(cython.address(a[at]), b, n) == 0
    return a[at : at + n] == b[:n]


@cython.cfunc
@cython.inline
def cut_bytes(data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, n: cython.Py_ssize_t) -> bytes:
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, cython.address(data[at])), n)
    return bytes(data[at : at + n])


@cython.final
@cython.cclass
class InFlight:
    """A message of the source without an answer. Its fields are typed in relay_run.pxd.

    qos: the source's; packet: as it went on, a `Publish` or its bytes; None: it did not go on"""

    def __init__(self, packet_id: cython.uint) -> None:
        self.packet_id = packet_id
        self.qos = self.payload_bytes = 0
        self.packet: Any = None
        self.is_answered = False
        self.after = None


@cython.final
@cython.cclass
class InFlightMessages:
    """Messages of one direction without an answer, by packet id, in the order of arrival.

    Of QoS 2 the target counts a message until it is complete, MQTT 5.0, 4.9: `unreleased` has the ids whose PUBREC went
    to the source and whose PUBREL did not come yet, `releasing` those whose PUBREL went on, up to PUBCOMP.
    taken, taken_bytes: messages that runs relayed, and bytes of their payloads, since somebody set them to 0"""

    def __init__(self) -> None:
        self.by_id = {}
        self.first = self.last = None
        self.unreleased = set()
        self.releasing = set()
        self.taken = self.taken_bytes = 0

    def maybe_at(self, packet_id: cython.uint) -> "InFlight | None":
        return self.by_id.get(packet_id)

    def add(self, packet_id: cython.uint, qos: cython.uint, payload_bytes: cython.Py_ssize_t, packet: object) -> None:
        """An id that is in flight keeps its place: the source sent its message again."""
        held: InFlight = self.by_id.get(packet_id)
        if held is None:
            held = InFlight(packet_id)
            self.by_id[packet_id] = held
            if self.last is None:
                self.first = held
            else:
                self.last.after = held
            self.last = held
        held.qos = qos
        held.payload_bytes = payload_bytes
        held.packet = packet
        held.is_answered = False

    def note_answered(self, packet_id: cython.uint) -> None:
        """raises: KeyError"""
        held: InFlight = self.by_id[packet_id]
        held.is_answered = True

    def maybe_take(self) -> "InFlight | None":
        """The oldest message if it is answered, which is in flight no more: answers leave in order. MQTT 5.0, 4.6."""
        held: InFlight = self.first
        if held is None or not held.is_answered:
            return None
        self.first = held.after
        if self.first is None:
            self.last = None
        held.after = None
        del self.by_id[held.packet_id]
        if held.qos == 2:
            self.unreleased.add(held.packet_id)
        return held

    def note_released(self, packet_id: cython.uint) -> None:
        """PUBREL goes on to the target; of an id of an earlier connection it changes nothing."""
        if packet_id in self.unreleased:
            self.unreleased.remove(packet_id)
            self.releasing.add(packet_id)

    def note_complete(self, packet_id: cython.uint) -> None:
        """PUBCOMP goes to the source."""
        self.releasing.discard(packet_id)
        self.unreleased.discard(packet_id)

    def on_way(self) -> cython.Py_ssize_t:
        """Messages that count for the target's receive maximum."""
        return len(self.by_id) + len(self.unreleased) + len(self.releasing)

    def is_on_way(self, packet_id: cython.uint) -> cython.bint:
        return packet_id in self.by_id or packet_id in self.unreleased or packet_id in self.releasing

    def unreleased_count(self) -> cython.Py_ssize_t:
        """Messages that are on their way for as long as the source does not send PUBREL."""
        return len(self.unreleased)

    def ids(self) -> list:
        """In the order of arrival."""
        return list(self.by_id)


@cython.final
@cython.cclass
class RelayRun:
    """One direction of a bridge during a link. Its fields are typed in relay_run.pxd.

    messages: of this direction; answered: of the other one, whose answers come this way
    topics: name at the source -> name at the target, as bytes; map_topic: adds others, or says None
    source_id: b"": not known; target: its `TargetLimits`"""

    def __init__(
        self, messages: InFlightMessages, answered: InFlightMessages, topics: dict, map_topic: object,
        source_id: bytes, target: object, source_v5: cython.bint, target_v5: cython.bint,
    ) -> None:  # fmt: skip
        self.messages, self.answered, self.topics, self.map_topic = messages, answered, topics, map_topic
        self.target_id = target.broker_id.encode()
        self.way = VIA + len(source_id).to_bytes(2, "big") + source_id if source_id and target_v5 else b""
        self.source_v5, self.target_v5 = source_v5, target_v5
        self.qos_max, self.packet_bytes_max = target.qos_max, target.packet_bytes_max
        self.receive_maximum = target.receive_maximum
        self.takes_retained, self.was_lost = target.takes_retained, target.was_lost
        self.last_key = self.last_topic = b""
        self.made = bytearray(FIRST_BYTES)
        self.used = 0

    def relay(self, data: object, pos: cython.Py_ssize_t, end: cython.Py_ssize_t, room: cython.Py_ssize_t) -> tuple:
        """Walk whole packets of `data[pos:end]`: the position of the first one not taken, and bytes for the target.

        room: with more than so many bytes for it, messages of QoS 0 are not taken
        cost: 0.1 to 0.3 µs a packet, compiled"""
        buf: cython.pointer(cython.const[cython.uchar]) = data
        head: cython.uint
        at: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        size: cython.Py_ssize_t
        self.used = 0
        while pos + 4 <= end:  # no packet that is taken is shorter
            at = varint_end(buf, pos + 1, end)
            if at < 0:
                break
            size = varint_value(buf, pos + 1, at)
            stop = at + size
            if stop > end:
                break
            head = buf[pos]
            if head >> 4 == 3:
                if self.publish(buf, pos, at, stop, room) < 0:
                    break
            elif size == 2 or (size == 3 and self.source_v5 and is_success(head, buf[at + 2])):
                if not self.answer(head, u16(buf, at)):
                    break
            else:
                break
            pos = stop
        made: bytes
        if cython.compiled:
            made = PyBytes_FromStringAndSize(PyByteArray_AS_STRING(self.made), self.used)
        else:
            made = bytes(self.made[: self.used])
        if len(self.made) > KEPT_BYTES:
            self.made = bytearray(FIRST_BYTES)
        return pos, made

    @cython.cfunc
    @cython.exceptval(-2)
    def publish(
        self, buf: cython.pointer(cython.const[cython.uchar]), pos: cython.Py_ssize_t, at: cython.Py_ssize_t,
        stop: cython.Py_ssize_t, room: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:  # fmt: skip
        """Relay a PUBLISH whose body is at `at`; -1: it is not an ordinary one."""
        head: cython.uint = buf[pos]
        qos: cython.uint = (head >> 1) & 3
        if qos > self.qos_max or qos == 3 or at + 2 > stop:
            return -1
        if head & 8 and (qos == 0 or self.was_lost):
            return -1
        if qos == 0 and self.used > room:
            return -1
        if qos and self.messages.on_way() >= self.receive_maximum:
            return -1
        topic_len: cython.Py_ssize_t = u16(buf, at)
        at += 2
        if topic_len == 0 or at + topic_len > stop or not self.knows_topic(buf, at, topic_len):
            return -1
        at += topic_len
        pid: cython.uint = 0
        if qos:
            if at + 2 > stop:
                return -1
            pid = u16(buf, at)
            at += 2
            if pid == 0:
                return -1
        props_at: cython.Py_ssize_t = at
        props_end: cython.Py_ssize_t = at
        way_at: cython.Py_ssize_t = at
        if self.source_v5:
            at = varint_end(buf, at, stop)
            if at < 0:
                return -1
            props_end = at + varint_value(buf, props_at, at)
            props_at = at
            if props_end > stop:
                return -1
            way_at = props_end
            if props_end > props_at:
                way_at = self.way_at(buf, props_at, props_end)
                if way_at == UNDECIDED:
                    return -1
        way: bytes = b"" if way_at == PASSED else self.way
        way_len: cython.Py_ssize_t = len(way)
        if way_at == PASSED:
            way_at = props_end
        topic: bytes = self.last_topic
        topic_len = len(topic)
        body: cython.Py_ssize_t = 2 + topic_len + (2 if qos else 0) + stop - props_end
        props_len: cython.Py_ssize_t = 0
        if self.target_v5:
            props_len = props_end - props_at + way_len
            body += varint_size(props_len) + props_len
        if 1 + varint_size(body) + body > self.packet_bytes_max or body >= 1 << 28:
            return -1
        self.reserve(body + 5)
        out: cython.p_uchar
        if cython.compiled:
            out = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(self.made))
        else:
            out = self.made
        to: cython.Py_ssize_t = self.used
        out[to] = head if self.takes_retained else head & 0xFE
        to = put_varint(out, to + 1, body)
        out[to] = topic_len >> 8
        out[to + 1] = topic_len & 255
        to = copy(out, to + 2, topic, 0, topic_len)
        if qos:
            out[to] = pid >> 8
            out[to + 1] = pid & 255
            to += 2
        if self.target_v5:
            to = put_varint(out, to, props_len)
            to = copy(out, to, buf, props_at, way_at - props_at)
            to = copy(out, to, way, 0, way_len)
            to = copy(out, to, buf, way_at, props_end - way_at)
        to = copy(out, to, buf, props_end, stop - props_end)
        if qos:
            self.messages.add(pid, qos, stop - props_end, cut_bytes(out, self.used, to - self.used))
        else:
            self.messages.taken += 1
            self.messages.taken_bytes += stop - props_end
        self.used = to
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def knows_topic(
        self, buf: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.bint:
        """Whether it is relayed under a name, which is `last_topic` then."""
        if size == len(self.last_key) and same(buf, at, self.last_key, size):
            return True
        key: bytes = cut_bytes(buf, at, size)
        topic: object = self.topics.get(key)
        if topic is None:
            topic = self.map_topic(key)
            if topic is None:
                return False
        self.last_key, self.last_topic = key, topic
        return True

    @cython.cfunc
    @cython.exceptval(-3)
    def way_at(
        self, buf: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Where the source's id belongs in these properties: behind the last user property, as the encoder puts it."""
        found: Found = Found()
        if walk_properties(buf, at, end, found) or found.alias_at >= 0 or found.users_apart:
            return UNDECIDED
        if found.users_at < 0:
            return end
        has_passed: cython.bint = False
        via: bytes = VIA
        at = found.users_at
        stop: cython.Py_ssize_t
        size: cython.Py_ssize_t
        while at < found.users_end:
            stop = at + 3 + u16(buf, at + 1)  # behind the name
            size = u16(buf, stop)
            if stop - at == VIA_BYTES and same(buf, at, via, VIA_BYTES):
                if size == len(self.target_id) and size and same(buf, stop + 2, self.target_id, size):
                    return UNDECIDED  # it has been there
                if stop + 2 + size - at == len(self.way) and same(buf, at, self.way, len(self.way)):
                    has_passed = True
            at = stop + 2 + size
        return PASSED if has_passed else found.users_end

    @cython.cfunc
    @cython.exceptval(-1)
    def answer(self, head: cython.uint, packet_id: cython.uint) -> cython.bint:
        """An acknowledgement that says yes; False: not an ordinary one."""
        if packet_id == 0:
            return False
        if head == 0x62:  # PUBREL, for a message of this direction
            if self.qos_max < 2:
                return False
            self.messages.note_released(packet_id)
            self.put_short(0x62, packet_id)
            return True
        if head == 0x70:  # PUBCOMP
            self.answered.note_complete(packet_id)
            self.put_short(0x70, packet_id)
            return True
        if head != 0x40 and head != 0x50:
            return False
        held: InFlight = self.answered.maybe_at(packet_id)
        if held is None or held.is_answered or held.packet is None:
            return False
        self.answered.taken += 1
        self.answered.taken_bytes += held.payload_bytes
        held.is_answered = True
        while True:
            held = self.answered.maybe_take()
            if held is None:
                return True
            self.put_short(0x40 if held.qos == 1 else 0x50, held.packet_id)

    @cython.cfunc
    def put_short(self, head: cython.uint, packet_id: cython.uint) -> cython.void:
        self.reserve(4)
        out: cython.p_uchar
        if cython.compiled:
            out = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(self.made))
        else:
            out = self.made
        out[self.used] = head
        out[self.used + 1] = 2
        out[self.used + 2] = packet_id >> 8
        out[self.used + 3] = packet_id & 255
        self.used += 4

    @cython.cfunc
    def reserve(self, size: cython.Py_ssize_t) -> cython.void:
        """Let `made` have room for so many bytes more."""
        needed: cython.Py_ssize_t = self.used + size
        if cython.compiled:
            if PyByteArray_GET_SIZE(self.made) < needed:
                PyByteArray_Resize(self.made, 2 * needed)
        elif len(self.made) < needed:
            self.made.extend(bytes(2 * needed - len(self.made)))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_success(head: cython.uint, reason: cython.uint) -> cython.bint:
    """Of an acknowledgement of three bytes."""
    return reason == 0 or (reason == NO_MATCHING_SUBSCRIBERS and (head == 0x40 or head == 0x50))
