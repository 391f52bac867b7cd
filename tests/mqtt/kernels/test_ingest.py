"""The kernel that cuts a receive buffer, compiled and as Python. MQTT 5.0, 3.3; docs/reference/log-format.md, "Row"."""

import importlib
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.topics import TopicTable
from rumq.mqtt.packets import Pingreq, Puback, Publish, Pubrel
from tests.kernel_forms import as_python


def kernel_of(load: Callable[[str], ModuleType]) -> SimpleNamespace:
    """The walk, and the two objects that it fills."""
    parts = [vars(load(f"rumq.mqtt.kernels.{name}")) for name in ("batch", "wire_state", "ingest")]
    return SimpleNamespace(**{name: value for part in parts for name, value in part.items()})


FORMS = [pytest.param(kernel_of(as_python), id="python")]
if not str(ingest.__file__).endswith(".py"):
    FORMS.append(pytest.param(kernel_of(importlib.import_module), id="compiled"))
KERNEL = pytest.mark.parametrize("kernel", FORMS)


class Cutter:
    """A connection that knows every topic as soon as it meets it."""

    def __init__(self, kernel: Any, version: int) -> None:
        self.kernel = kernel
        self.wire = kernel.Wire(version == 5, 1 << 20, 1000, 8)
        self.wire.publishers = [1]
        self.batch = kernel.Batch()
        self.topics = TopicTable(7)
        self.acks = b""

    def cut(self, data: bytes) -> int:
        """Cut as much as there is; returns how many bytes were taken."""
        at = 0
        while True:
            at = self.kernel.cut(self.wire, [self.batch], data, at, len(data), self.topics)
            if self.wire.stop == self.kernel.TOPIC:
                self.topics[self.wire.topic] = len(self.topics)
            elif self.wire.stop == self.kernel.FULL:
                self.batch.grow(self.wire.frame_bytes)
            else:
                self.acks += bytes(self.wire.acks or b"")
                self.wire.acks = None
                return int(at)

    def feed(self, pieces: list[bytes]) -> None:
        """A stream in pieces, as sockets give them."""
        tail = b""
        for piece in pieces:
            tail += piece
            tail = tail[self.cut(tail) :]
        assert tail == b""

    def records(self) -> list[Publish]:
        """What was taken, decoded from the frames by their rows."""
        rows, frames, count, _, _ = self.batch.take()
        words = memoryview(rows).cast("I")
        found = []
        for row in range(count):
            start = words[row * 8 + 1]
            end = words[row * 8 + 9] if row + 1 < count else len(frames)
            frame = frames[start:end]
            head = frame_at(frame, 0, len(frame))
            assert head is not None and sum(head) == len(frame), "a frame is exactly one packet"
            packet = decode(frame[0], frame[head[0] :], 5 if self.wire.v5 else 4)
            assert isinstance(packet, Publish)
            assert frame[words[row * 8 + 5] :] == packet.payload
            found.append(packet)
        return found


def published(n: int, qos: int) -> Publish:
    return Publish(f"a/{n % 3}", b"payload %d" % n, qos, packet_id=n + 1 if qos else None)


@KERNEL
@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_publishes_become_rows_and_frames(kernel: Any, version: int, qos: int) -> None:
    packets = [published(n, qos) for n in range(20)]
    cutter = Cutter(kernel, version)
    cutter.feed([b"".join(encode(p, version) for p in packets)])
    assert cutter.records() == packets
    assert cutter.acks == (b"" if qos == 0 else b"".join(bytes((0x30 + 16 * qos, 2, 0, n + 1)) for n in range(20)))


@KERNEL
def test_acknowledgements_between_publishes_are_part_of_no_frame(kernel: Any) -> None:
    packets = [published(n, 2) for n in range(10)]
    mixed = b"".join(encode(p, 4) + encode(Pubrel(p.packet_id or 0), 4) + encode(Puback(9), 4) for p in packets)
    cutter = Cutter(kernel, 4)
    cutter.feed([mixed])
    assert cutter.records() == packets


@KERNEL
@pytest.mark.parametrize("version", [4, 5])
def test_a_stream_may_be_cut_anywhere(kernel: Any, version: int) -> None:
    packets = [published(n, n % 3) for n in range(6)]
    stream = b"".join(encode(p, version) for p in packets)
    for at in range(len(stream) + 1):
        cutter = Cutter(kernel, version)
        cutter.feed([stream[:at], stream[at:]])
        assert cutter.records() == packets
    cutter = Cutter(kernel, version)
    cutter.feed([stream[i : i + 1] for i in range(len(stream))])
    assert cutter.records() == packets


@KERNEL
def test_dup_and_retain_are_not_in_the_stored_frame(kernel: Any) -> None:
    cutter = Cutter(kernel, 4)
    cutter.feed([encode(Publish("t", b"x", 1, retain=True, dup=True, packet_id=5), 4)])
    (packet,) = cutter.records()
    assert (packet.dup, packet.retain) == (False, False)


@KERNEL
@pytest.mark.parametrize("alias", [False, True])
def test_what_may_not_be_retained_is_left_over_and_only_that(kernel: Any, alias: bool) -> None:
    cutter = Cutter(kernel, 5)
    cutter.topics[b"guarded"] = 7 | kernel.NO_RETAIN
    properties: Any = {"topic_alias": 1} if alias else {}
    first = encode(Publish("guarded", b"1", properties=properties), 5)
    kept = encode(Publish("" if alias else "guarded", b"2", retain=True, properties=properties), 5)
    free = encode(Publish("free", b"3", retain=True), 5)
    assert cutter.cut(first + free + kept + first) == len(first + free)
    assert cutter.wire.stop == kernel.RETAIN
    assert (cutter.wire.topic, cutter.wire.frame_bytes) == (b"guarded", len(kept))
    rows = memoryview(cutter.batch.take()[0]).cast("I")
    assert [rows[0], rows[8]] == [7, 1]


@KERNEL
def test_pingreq_is_answered_behind_the_acknowledgements_and_is_part_of_no_frame(kernel: Any) -> None:
    """MQTT 5.0, 3.12: a PINGRESP says that all before it is done."""
    packets = [published(n, 1) for n in range(3)]
    cutter = Cutter(kernel, 4)
    cutter.feed([b"".join(encode(packet, 4) + encode(Pingreq(), 4) for packet in packets) + b"\xc0\x00"])
    assert cutter.records() == packets
    assert cutter.acks == b"".join(b"\x40\x02\x00%c\xd0\x00" % (n + 1) for n in range(3)) + b"\xd0\x00"
    assert (cutter.wire.others, cutter.wire.answers) == (4, 3 + 4)


@KERNEL
@pytest.mark.parametrize("data", ["C1 00", "C0 01 00", "C0 80 00"])
def test_a_pingreq_that_is_none_is_left_to_the_decoder(kernel: Any, data: str) -> None:
    cutter = Cutter(kernel, 4)
    assert cutter.cut(bytes.fromhex(data)) == 0
    assert cutter.wire.stop == kernel.OTHER and not cutter.acks


@KERNEL
def test_a_topic_alias_becomes_the_topic(kernel: Any) -> None:
    told = Publish("long/topic", b"1", properties={"topic_alias": 3, "content_type": "x"})
    used = Publish("", b"2", properties={"topic_alias": 3})
    cutter = Cutter(kernel, 5)
    cutter.feed([encode(told, 5) + encode(used, 5)])
    first, second = cutter.records()
    assert (first.topic, first.properties) == ("long/topic", {"content_type": "x"})
    assert (second.topic, second.properties, second.payload) == ("long/topic", {}, b"2")


@KERNEL
def test_a_qos_2_message_that_comes_again_is_stored_once(kernel: Any) -> None:
    packet = published(6, 2)
    cutter = Cutter(kernel, 4)
    cutter.feed([encode(packet, 4) * 3])
    assert cutter.records() == [packet]
    assert cutter.acks == b"\x50\x02\x00\x07" * 3


@KERNEL
@pytest.mark.parametrize(
    ("version", "data", "reason"),
    [
        (4, "36 03 00 01 61", 0x81),  # QoS 3
        (4, "38 03 00 01 61", 0x81),  # QoS 0 with DUP
        (4, "30 01 00", 0x81),  # ends inside the topic's length
        (4, "30 03 00 05 61", 0x81),  # ends inside the topic
        (4, "32 05 00 01 61 00 00", 0x82),  # packet id 0
        (4, "30 02 00 00", 0x82),  # empty topic
        (4, "30 80 80 80 80 01", 0x81),  # five bytes of length
        (5, "30 03 00 01 61", 0x81),  # no property length
        (5, "30 04 00 01 61 05", 0x81),  # properties longer than the packet
        (5, "30 07 00 01 61 03 23 00 00", 0x94),  # alias 0
        (5, "30 07 00 01 61 03 23 00 09", 0x94),  # alias above the maximum
        (5, "30 06 00 01 61 02 01 02", 0x82),  # payload format 2
        (5, "30 08 00 01 61 04 01 00 01 00", 0x82),  # payload format twice
        (5, "30 06 00 01 61 02 0B 01", 0x82),  # a subscription identifier from a client
        (5, "30 06 00 00 03 23 00 01", 0x82),  # an alias that stands for nothing
        (5, "30 84 00 00 01 61 00", 0x81),  # length in more bytes than needed
    ],
)
def test_what_is_malformed_is_named(kernel: Any, version: int, data: str, reason: int) -> None:
    cutter = Cutter(kernel, version)
    cutter.cut(bytes.fromhex(data))
    assert cutter.wire.stop == kernel.FAULT
    assert cutter.wire.fault == reason
    assert cutter.wire.fault_text


@pytest.mark.parametrize("version", [4, 5])
@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=60), start=st.sampled_from([b"", b"\x30", b"\x32\x0a\x00\x01a", b"\x34"]))
def test_both_forms_agree_on_anything(version: int, data: bytes, start: bytes) -> None:
    ends = []
    for param in FORMS:
        kernel: Any = param.values[0]
        cutter = Cutter(kernel, version)
        taken = cutter.cut(start + data)
        rows, frames, count, flags, tags = cutter.batch.take()
        ends.append((taken, cutter.wire.stop, cutter.wire.fault, bytes(rows), frames, count, flags, tags, cutter.acks))
    assert all(end == ends[0] for end in ends)


@KERNEL
@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=80))
def test_what_is_taken_is_what_the_decoder_takes(kernel: Any, data: bytes) -> None:
    """Behind a good PUBLISH header, anything: a record only if the ordinary decoder has no fault with it."""
    frame = b"\x30" + bytes([len(data) + 3]) + b"\x00\x01a" + data
    cutter = Cutter(kernel, 5)
    cutter.cut(frame)
    try:
        packet = decode(frame[0], frame[2:], 5)
    except MqttFault:
        packet = None
    if packet is None or "topic_alias" in packet.properties or "subscription_identifiers" in packet.properties:
        return
    assert cutter.records() == [packet]


@pytest.fixture(scope="module")
def crowded() -> TopicTable:
    """So many topics that the kernel looks ahead of the packet it is at."""
    table = TopicTable(7)
    for n in range(30_000):
        table[b"crowd/%d" % n] = n
    return table


@pytest.mark.parametrize("version", [4, 5])
@settings(max_examples=300, deadline=None)
@given(
    numbers=st.lists(st.integers(0, 40_000), max_size=200),
    broken=st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 255)), max_size=2),
    others=st.booleans(),
)
def test_what_is_looked_at_ahead_changes_nothing(
    crowded: TopicTable, version: int, numbers: list[int], broken: list[tuple[int, int]], others: bool
) -> None:
    """A table of the topics that the packets have, few as they are, is the oracle; what follows may be malformed."""
    wire = [encode(Publish(f"crowd/{n}", b"x" * (n % 300), 0), version) for n in numbers]
    if others:
        wire[len(wire) // 2 : len(wire) // 2] = [encode(Pingreq(), version), encode(Puback(3), version)]
    stream = bytearray(b"".join(wire))
    for at, byte in broken:
        if at < len(stream):
            stream[at] = byte
    kernel, found = kernel_of(importlib.import_module), []
    few = {b"crowd/%d" % n: n for n in range(30_000)}
    for topics in (crowded, few):
        state = kernel.Wire(version == 5, 1 << 20, 1000, 8)
        state.publishers = [1]
        batch = kernel.Batch()
        taken = kernel.cut(state, [batch], bytes(stream), 0, len(stream), topics)
        found.append((taken, state.stop, state.fault, state.topic, batch.take()))
    assert found[0] == found[1]
