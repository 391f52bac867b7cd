"""Packets that break the format. MQTT 5.0, 1.5, 2.1, 2.2 and 4.13; MQTT 3.1.1, 1.5.3, 2.2 and 4.8."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Kind, Prop

FLAGS = {
    "pubrel": (wire.ack(Kind.PUBREL, 1), 2),
    "puback": (wire.ack(Kind.PUBACK, 1), 0),
    "pubrec": (wire.ack(Kind.PUBREC, 1), 0),
    "pubcomp": (wire.ack(Kind.PUBCOMP, 1), 0),
    "pingreq": (wire.PINGREQ, 0),
    "disconnect": (wire.disconnect(), 0),
}


@pytest.mark.parametrize("flags", [0, 1, 2, 4, 8, 15])
@pytest.mark.parametrize("packet", FLAGS.values(), ids=FLAGS.keys())
def test_reserved_flags_have_their_value(join: Dial, version: int, packet: tuple[bytes, int], flags: int) -> None:
    """MQTT-2.1.3-1, 3.6.1-1 and 3.14.1-1 (5); 2.2.2-1, 2.2.2-2, 3.6.1-1 and 3.14.1-1 (3.1.1)."""
    data, right = packet
    if flags == right:
        pytest.skip("these are the flags it has")
    peer = join(version=version)
    peer.send(bytes([data[0] & 0xF0 | flags]) + data[1:])
    peer.expect_refusal(0x81, 0x82)


@pytest.mark.parametrize("flags", [0, 1, 4, 8, 10, 15])
def test_subscribe_and_unsubscribe_have_flags_0010(join: Dial, version: int, topic: str, flags: int) -> None:
    for packet in (
        wire.subscribe(1, [(topic, 0)], version=version),
        wire.unsubscribe(1, [topic], version=version),
    ):
        peer = join(version=version)
        peer.send(bytes([packet[0] & 0xF0 | flags]) + packet[1:])
        peer.expect_refusal(0x81, 0x82)


def test_auth_has_flags_0000(join: Dial) -> None:
    peer = join()
    peer.send(b"\xf1" + wire.auth(0x18)[1:])
    peer.expect_refusal(0x81, 0x82)


def test_qos_3_is_malformed(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    peer.send(wire.frame(0x36, wire.text(topic) + b"\0\1" + b"\0" * (version == 5) + b"x"))
    peer.expect_refusal(0x81, 0x82)


def test_a_qos_0_publish_with_dup_is_refused(join: Dial, version: int, topic: str) -> None:
    """MQTT-3.3.1-2: DUP must be 0; a receiver may also take it as it is."""
    peer = join(version=version)
    peer.send(wire.publish(topic, b"x", dup=True, version=version), wire.PINGREQ)
    answer = peer.maybe_receive()
    assert answer is None or answer.kind == Kind.PINGRESP or answer.code in (0x81, 0x82)


@pytest.mark.parametrize("first_byte", [0x00, 0x0F, 0x20, 0x90, 0xB0, 0xD0], ids=hex)
def test_a_packet_that_no_client_sends_is_refused(join: Dial, version: int, first_byte: int) -> None:
    peer = join(version=version)
    peer.send(wire.frame(first_byte, b"\0\0\0" if first_byte not in (0xD0, 0x00) else b""))
    peer.expect_refusal(0x81, 0x82)


def test_311_has_no_packet_type_15(join: Dial) -> None:
    peer = join(version=4)
    peer.send(wire.frame(0xF0))
    peer.expect_refusal()


def test_a_remaining_length_of_five_bytes_is_malformed(join: Dial, version: int) -> None:
    peer = join(version=version)
    peer.send(b"\x30\x80\x80\x80\x80\x01")
    peer.expect_refusal(0x81, 0x82, 0x95)


def test_a_property_length_of_five_bytes_is_malformed(join: Dial, topic: str) -> None:
    peer = join()
    peer.send(wire.frame(0x30, wire.text(topic) + b"\x80\x80\x80\x80\x00"))
    peer.expect_refusal(0x81, 0x82)


@pytest.mark.parametrize("width", [2, 3, 4])
def test_a_length_in_more_bytes_than_it_needs(join: Dial, version: int, topic: str, width: int) -> None:
    """MQTT-1.5.5-1 binds the sender; a receiver may take it for what it says or as malformed."""
    watcher, peer = join(version=version), join(version=version)
    watcher.subscribe(topic, qos=1)
    body = wire.text(topic) + b"\0\1" + b"\0" * (version == 5) + b"x"
    peer.send(wire.frame(0x32, body, width))
    answer = peer.maybe_receive()
    if answer is not None and answer.kind == Kind.PUBACK:
        assert watcher.message().payload == b"x"
    else:
        assert answer is None or answer.code in (0x81, 0x82)


TRAILING = {
    "puback": wire.frame(0x40, b"\0\1\0\0xx"),
    "pubrel": wire.frame(0x62, b"\0\1\0\0x"),
    "subscribe": wire.frame(0x82, b"\0\1\0" + wire.text("a") + b"\0" + b"\0"),
    "unsubscribe": wire.frame(0xA2, b"\0\1\0" + wire.text("a") + b"\0"),
    "pingreq": wire.frame(0xC0, b"x"),
    "disconnect": wire.frame(0xE0, b"\0\0x"),
}


@pytest.mark.parametrize("packet", TRAILING.values(), ids=TRAILING.keys())
def test_bytes_left_over_make_a_packet_malformed(join: Dial, packet: bytes) -> None:
    peer = join()
    peer.send(packet)
    peer.expect_refusal(0x81, 0x82)


@pytest.mark.parametrize("first_byte", [0x40, 0x50, 0x62, 0x70, 0xC0, 0xE0], ids=hex)
def test_bytes_left_over_make_a_311_packet_malformed(join: Dial, first_byte: int) -> None:
    peer = join(version=4)
    peer.send(wire.frame(first_byte, b"\0\1x" if first_byte < 0xC0 else b"x"))
    peer.expect_refusal()


SHORT = {
    "publish without topic": wire.frame(0x30),
    "publish with half a length": wire.frame(0x30, b"\0"),
    "topic past the end": wire.frame(0x30, b"\0\x09abc"),
    "qos 1 without identifier": wire.frame(0x32, wire.text("a")),
    "qos 1 with half an identifier": wire.frame(0x32, wire.text("a") + b"\0"),
    "puback without identifier": wire.frame(0x40),
    "pubrec with half an identifier": wire.frame(0x50, b"\0"),
    "pubrel without identifier": wire.frame(0x62),
    "pubcomp without identifier": wire.frame(0x70, b"\0"),
    "subscribe without identifier": wire.frame(0x82),
    "filter past the end": wire.frame(0x82, b"\0\1\0\0\x09a"),
    "unsubscribe without identifier": wire.frame(0xA2, b"\0"),
}


@pytest.mark.parametrize("packet", SHORT.values(), ids=SHORT.keys())
def test_a_packet_cut_short_within_its_length_is_malformed(join: Dial, version: int, packet: bytes) -> None:
    peer = join(version=version)
    peer.send(packet)
    peer.expect_refusal(0x81, 0x82)


BAD_PROPERTIES = {
    "puback reason twice": wire.ack(Kind.PUBACK, 1, 0, [(Prop.REASON_STRING, "x")] * 2),
    "puback foreign": wire.ack(Kind.PUBACK, 1, 0, [(Prop.CONTENT_TYPE, "x")]),
    "pubrec foreign": wire.ack(Kind.PUBREC, 1, 0, [(Prop.TOPIC_ALIAS, 1)]),
    "pubrel foreign": wire.ack(Kind.PUBREL, 1, 0, [(Prop.SESSION_EXPIRY, 1)]),
    "pubcomp not UTF-8": wire.ack(Kind.PUBCOMP, 1, 0, [(Prop.REASON_STRING, b"\xff")]),
    "puback unknown code": wire.ack(Kind.PUBACK, 1, 0x01),
    "pubrec unknown code": wire.ack(Kind.PUBREC, 1, 0x92),
    "pubrel unknown code": wire.ack(Kind.PUBREL, 1, 0x80),
    "pubcomp unknown code": wire.ack(Kind.PUBCOMP, 1, 0x10),
    "subscribe foreign": wire.subscribe(1, [("a", 0)], [(Prop.REASON_STRING, "x")]),
    "subscribe user property not UTF-8": wire.subscribe(1, [("a", 0)], [(Prop.USER_PROPERTY, (b"\xff", "v"))]),
    "disconnect foreign": wire.disconnect(0, [(Prop.CONTENT_TYPE, "x")]),
    "disconnect server reference": wire.disconnect(0, [(Prop.SERVER_REFERENCE, "x")]),
    "disconnect session expiry twice": wire.disconnect(0, [(Prop.SESSION_EXPIRY, 0)] * 2),
    "disconnect unknown code": wire.disconnect(0x01),
    "unknown property": wire.frame(0x82, b"\0\1\2\x7f\0" + wire.text("a") + b"\0"),
    "properties past the end": wire.frame(0x82, b"\0\1\x7f\x0b\1"),
    "publish properties past the end": wire.frame(0x30, wire.text("a") + b"\x09\x01"),
    "puback properties past the end": wire.frame(0x40, b"\0\1\0\x09"),
}


@pytest.mark.parametrize("packet", BAD_PROPERTIES.values(), ids=BAD_PROPERTIES.keys())
def test_bad_properties_and_codes_are_refused(join: Dial, packet: bytes) -> None:
    """2.2.2 and MQTT-4.13.1-1."""
    peer = join()
    peer.send(packet)
    peer.expect_refusal(0x81, 0x82)


def test_u_feff_is_a_character(join: Dial, version: int, topic: str) -> None:
    """MQTT-1.5.4-3 (5), 1.5.3-3 (3.1.1): neither skipped nor stripped, at the front or within."""
    peer = join(version=version)
    odd = f"\ufeff{topic}/\ufeff"
    peer.subscribe(odd)
    join(version=version).publish(odd, b"x")
    assert peer.message().topic == odd


@pytest.mark.parametrize("character", ["\u0001", "\u001f", "\u007f", "\u009f", "\ufdd0", "\uffff"], ids=ascii)
def test_characters_that_should_not_be_sent_are_kept_or_refused(
    join: Dial, version: int, topic: str, character: str
) -> None:
    """1.5.4: control characters and non-characters may be treated as malformed, never changed."""
    peer = join(version=version)
    odd = topic + character
    peer.send(wire.subscribe(1, [(odd, 0)], version=version))
    peer.send(wire.publish(odd, b"x", version=version))
    answer = peer.maybe_receive()
    if answer is not None and answer.codes == [0]:
        assert peer.message().topic == odd


def test_one_client_s_error_is_no_other_client_s(join: Dial, version: int, topic: str) -> None:
    """MQTT-4.13.2-1: the connection ends, with no consequence for any other session."""
    other = join(version=version)
    other.subscribe(topic, qos=1)
    for packet in (wire.frame(0x30), b"\x30\x80\x80\x80\x80\x01", wire.subscribe(1, [], version=version)):
        peer = join(version=version)
        peer.send(packet)
        peer.rest_until_end()
    other.publish(topic, b"unharmed", 1)
    assert other.message().payload == b"unharmed"


def test_what_came_before_a_malformed_packet_is_processed(join: Dial, version: int, topic: str) -> None:
    watcher, peer = join(version=version), join(version=version)
    watcher.subscribe(topic)
    peer.send(wire.publish(topic, b"good", version=version), wire.frame(0x30))
    assert watcher.payloads(1) == [b"good"]
