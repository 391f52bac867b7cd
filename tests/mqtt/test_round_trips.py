"""What is written is read again; what is read was never a crash. MQTT 5.0, 2 to 4.13."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import Frame, FrameReader
from rumq.mqtt.packets import Connect, Packet, Subscribe
from rumq.mqtt.topics import check_topic_filter, check_topic_name, matches, parse_share
from tests.mqtt.packets_table import VALID, Row
from tests.mqtt.strategies import packets, texts, versions

repeatable = settings(derandomize=True, deadline=None)

connections = versions.flatmap(lambda version: st.tuples(st.just(version), st.lists(packets(version), max_size=4)))


@repeatable
@given(connections, st.data())
def test_packets_written_one_after_the_other_are_read_again_however_they_are_cut(
    connection: tuple[int, list[Packet]], data: st.DataObject
) -> None:
    version, sent = connection
    stream = b"".join(encode(packet, version) for packet in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5), label="cuts"))
    reader, got = FrameReader(version=version), []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        reader.receive(stream[start:stop])
        got += [decode(frame.first_byte, frame.body, version) for frame in reader.frames()]
    assert got == sent and reader.buffered_bytes == 0


@repeatable
@given(connections)
def test_reading_and_writing_again_gives_the_same_bytes(connection: tuple[int, list[Packet]]) -> None:
    version, sent = connection
    reader = FrameReader(version=version)
    for packet in sent:
        reader.receive(encode(packet, version))
    for packet, frame in zip(sent, reader.frames(), strict=True):
        assert encode(decode(frame.first_byte, frame.body, version), version) == encode(packet, version)


@repeatable
@given(st.integers(0, 255), st.binary(max_size=100), versions)
def test_no_bytes_raise_anything_but_a_fault(first_byte: int, body: bytes, version: int) -> None:
    packet = decoded_or_fault(first_byte, body, version)
    assert isinstance(packet, MqttFault) or means_the_same_when_written(packet, version)


@repeatable
@given(st.sampled_from(VALID), st.data(), versions)
def test_no_damaged_packet_raises_anything_but_a_fault(a: Row, data: st.DataObject, version: int) -> None:
    damaged = bytearray(a.wire[2:])
    for at in data.draw(st.lists(st.integers(0, len(damaged)), max_size=3), label="damage"):
        damaged[at : at + 1] = data.draw(st.binary(max_size=2), label="with")
    packet = decoded_or_fault(a.wire[0], bytes(damaged), version)
    assert isinstance(packet, MqttFault) or means_the_same_when_written(packet, version)


def decoded_or_fault(first_byte: int, body: bytes, version: int) -> Packet | MqttFault:
    try:
        return decode(first_byte, body, version)
    except MqttFault as fault:
        return fault


def means_the_same_when_written(packet: Packet, version: int) -> bool:
    """Whether what was read can be written and read again, where this version has words for it."""
    version = packet.version if isinstance(packet, Connect) else version
    if version == 3:  # it lets a peer do what we never would
        return True
    (frame,) = framed(encode(packet, version), version)
    return decode(frame.first_byte, frame.body, version) == packet


def framed(wire: bytes, version: int) -> list[Frame]:
    reader = FrameReader(version=version)
    reader.receive(wire)
    return list(reader.frames())


@repeatable
@given(st.lists(st.binary(max_size=12), max_size=6), versions)
def test_no_stream_raises_anything_but_a_fault(chunks: list[bytes], version: int) -> None:
    reader = FrameReader(packet_bytes_max=64, version=version)
    try:
        for chunk in chunks:
            reader.receive(chunk)
            for frame in reader.frames():
                decode(frame.first_byte, frame.body, version)
    except MqttFault:
        pass


@repeatable
@given(st.text(), st.text("a/+#$\0é", max_size=12))
def test_no_text_as_a_topic_raises_anything_but_a_fault(text: str, topical: str) -> None:
    for topic in (text, topical, "$share/" + topical):
        for check in (check_topic_name, check_topic_filter, parse_share):
            try:
                check(topic)
            except MqttFault:
                pass
        matches(topic, topical)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_publish_of_the_longest_topic_is_read_again(version: int) -> None:
    packet = decode(0x30, b"\xff\xff" + b"a" * 65535 + b"\0", version)
    assert decode(0x30, encode(packet, version)[4:], version) == packet


@repeatable
@given(texts)
def test_text_is_kept_as_it_is_without_normalisation(text: str) -> None:
    """1.5.4: a byte order mark is not stripped, and nothing else is changed."""
    wire = len(text.encode()).to_bytes(2) + text.encode()
    packet = decode(0x82, b"\0\1" + wire + b"\0", 4)
    assert isinstance(packet, Subscribe) and packet.filters[0].topic_filter == text
