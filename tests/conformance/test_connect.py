"""CONNECT and CONNACK as both versions have them. MQTT 5.0 and 3.1.1, 3.1 and 3.2."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Kind, Will


def test_a_connect_is_accepted_by_exactly_one_connack(dial: Dial, version: int, name: str) -> None:
    peer = dial(version)
    answer = peer.connect(name)
    assert (answer.code, answer.session_present) == (0, False)
    peer.expect_silence()


FIRST_PACKETS = {
    "publish": wire.publish("first", b"x"),
    "puback": wire.ack(Kind.PUBACK, 1),
    "subscribe": wire.subscribe(1, [("first", 0)]),
    "unsubscribe": wire.unsubscribe(1, ["first"]),
    "pingreq": wire.PINGREQ,
    "disconnect": wire.disconnect(),
    "connack": wire.frame(0x20, b"\0\0"),
    "auth": wire.auth(0x18, [(wire.Prop.AUTH_METHOD, "SCRAM")]),
    "type-0": wire.frame(0x00),
}


@pytest.mark.parametrize("first", FIRST_PACKETS.values(), ids=FIRST_PACKETS.keys())
def test_the_first_packet_must_be_connect(dial: Dial, first: bytes) -> None:
    peer = dial()
    peer.send(first)
    assert peer.rest_until_end() == []


def test_a_second_connect_ends_the_connection(join: Dial, version: int, name: str) -> None:
    peer = join(name, version)
    peer.send(wire.connect(name, version))
    peer.expect_refusal(0x82)


@pytest.mark.parametrize("wrong", ["MQTTX", "mqtt", "MQT", "", "HTTP"])
def test_another_protocol_name_is_refused(dial: Dial, version: int, wrong: str) -> None:
    peer = dial(version)
    body = wire.text(wrong) + bytes([version, 2, 0, 60]) + b"\0" * (version == 5) + wire.text("x")
    peer.send(wire.frame(0x10, body))
    peer.expect_no_connection(0x84, 0x81, 0x82, silent=True)


@pytest.mark.parametrize("level", [0, 1, 2, 6, 99, 0x85, 255])
def test_an_unknown_protocol_level_is_refused_by_name(dial: Dial, level: int) -> None:
    """MQTT-3.1.2-2 of either version: return code 0x01 in the form of 3.1.1, or 0x84 in that of 5."""
    peer = dial()
    peer.send(wire.frame(0x10, wire.text("MQTT") + bytes([level, 2, 0, 60]) + b"\0" + wire.text("x")))
    raw = bytearray()
    while data := peer.socket.recv(100):
        raw += data
    assert raw in (b"", bytes.fromhex("20020001"), bytes.fromhex("2003008400"))


def test_the_reserved_connect_flag_must_be_zero(dial: Dial, version: int, name: str) -> None:
    peer = dial(version)
    peer.send(wire.connect(name, version, flags=0x03))
    peer.expect_no_connection(0x81, 0x82)


WRONG_FLAGS = {
    "will qos without will": 0x02 | 0x08,
    "will qos 2 without will": 0x02 | 0x10,
    "will retain without will": 0x02 | 0x20,
}


@pytest.mark.parametrize("flags", WRONG_FLAGS.values(), ids=WRONG_FLAGS.keys())
def test_without_a_will_its_qos_and_retain_must_be_zero(dial: Dial, version: int, name: str, flags: int) -> None:
    peer = dial(version)
    peer.send(wire.connect(name, version, flags=flags))
    peer.expect_no_connection(0x81, 0x82)


def test_will_qos_3_is_malformed(dial: Dial, version: int, name: str, topic: str) -> None:
    peer = dial(version)
    peer.send(wire.connect(name, version, will=Will(topic, qos=3)))
    peer.expect_no_connection(0x81, 0x82)


MISSING = {"will": 0x02 | 0x04, "user name": 0x02 | 0x80, "user name and password": 0x02 | 0xC0}


@pytest.mark.parametrize("flags", MISSING.values(), ids=MISSING.keys())
def test_a_field_that_a_flag_announces_must_be_there(dial: Dial, version: int, name: str, flags: int) -> None:
    peer = dial(version)
    peer.send(wire.connect(name, version, flags=flags))
    peer.expect_no_connection(0x81, 0x82)


@pytest.mark.parametrize("field", ["user name", "password", "will"])
def test_a_field_that_no_flag_announces_must_not_be_there(
    dial: Dial, version: int, name: str, topic: str, field: str
) -> None:
    """What is left over in the payload is no part of the packet, so the packet is malformed."""
    announced = {
        "user name": wire.connect(name, version, username="u", flags=0x02),
        "password": wire.connect(name, version, username="u", password=b"p", flags=0x82),
        "will": wire.connect(name, version, will=Will(topic), flags=0x02),
    }
    peer = dial(version)
    peer.send(announced[field])
    peer.expect_no_connection(0x81, 0x82)


def test_311_wants_a_user_name_beside_a_password(dial: Dial, name: str) -> None:
    """MQTT-3.1.2-22 of 3.1.1."""
    peer = dial(4)
    peer.send(wire.connect(name, 4, password=b"secret"))
    assert [answer.code for answer in peer.rest_until_end() if answer.code == 0] == []


def test_5_takes_a_password_without_a_user_name(dial: Dial, name: str) -> None:
    assert dial().connect(name, password=b"secret").code == 0


def test_all_fields_of_connect_are_read_in_their_order(join: Dial, version: int, name: str, topic: str) -> None:
    """MQTT-3.1.3-1: client identifier, will topic, will message, user name, password."""
    watcher = join(version=version)
    watcher.subscribe(topic)
    peer = join(name, version, will=Will(topic, b"last words"), username="user", password=b"\0\xff")
    peer.close()
    assert watcher.message().payload == b"last words"


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_connect_whose_fields_overrun_its_length_is_malformed(dial: Dial, version: int, name: str, cut: int) -> None:
    peer = dial(version)
    whole = wire.connect(name, version, username="user")
    peer.send(wire.frame(0x10, whole[2:-cut]))
    peer.expect_no_connection(0x81, 0x82)


def test_the_client_identifier_must_be_there(dial: Dial, version: int) -> None:
    peer = dial(version)
    peer.send(wire.frame(0x10, wire.text("MQTT") + bytes([version, 2, 0, 60]) + b"\0" * (version == 5)))
    peer.expect_no_connection(0x81, 0x82, 0x85)


@pytest.mark.parametrize("client_id", ["a", "0123456789abcdefghijklm", "NOPQRSTUVWXYZnopqrstuvw"])
def test_client_identifiers_of_1_to_23_letters_and_digits_are_allowed(dial: Dial, version: int, client_id: str) -> None:
    assert dial(version).connect(client_id).code == 0


@pytest.mark.parametrize("client_id", ["with space/and slash", "ünï-çødé", "x" * 200])
def test_client_identifiers_beyond_the_least_alphabet_are_taken_or_refused_by_name(
    dial: Dial, version: int, client_id: str
) -> None:
    peer = dial(version)
    answer = peer.connect(client_id)
    assert answer.code in ((0, 0x85) if version == 5 else (0, 2))
    if answer.code:
        assert peer.rest_until_end() == []


def test_an_empty_client_identifier_with_clean_start_is_given_a_unique_one(dial: Dial, version: int) -> None:
    one, two = dial(version), dial(version)
    assert (one.connect("").code, two.connect("").code) == (0, 0)
    one.expect_silence()
    two.expect_silence()


def test_311_refuses_an_empty_client_identifier_without_clean_session(dial: Dial) -> None:
    """MQTT-3.1.3-8 of 3.1.1: return code 2, then close."""
    peer = dial(4)
    assert peer.connect("", clean=False).code == 2
    assert peer.rest_until_end() == []


@pytest.mark.parametrize("field", ["client id", "user name", "will topic"])
@pytest.mark.parametrize("bad", [b"\xff\xfe", b"a\xed\xa0\x80", b"a\x00b", b"\xc0\xaf", b"\xf4\x90\x80\x80"])
def test_the_strings_of_connect_must_be_utf8(dial: Dial, version: int, name: str, field: str, bad: bytes) -> None:
    peer = dial(version)
    if field == "client id":
        peer.send(wire.connect(bad, version))
    elif field == "user name":
        peer.send(wire.connect(name, version, username=bad))
    else:
        peer.send(wire.connect(name, version, will=Will(bad)))
    peer.expect_no_connection(0x81, 0x82, 0x85, 0x90)


@pytest.mark.parametrize("wildcard", ["a/+", "a/#", ""])
def test_a_will_topic_is_a_topic_name(dial: Dial, version: int, name: str, wildcard: str) -> None:
    peer = dial(version)
    peer.send(wire.connect(name, version, will=Will(wildcard)))
    peer.expect_no_connection(0x81, 0x82, 0x90)


@pytest.mark.parametrize("flags", range(1, 16))
def test_the_flags_of_the_fixed_header_of_connect_are_zero(dial: Dial, name: str, flags: int) -> None:
    peer = dial(4)
    whole = wire.connect(name, 4)
    peer.send(bytes([0x10 | flags]) + whole[1:])
    peer.expect_no_connection()


def test_nothing_after_a_refused_connect_is_processed(dial: Dial, join: Dial, version: int, topic: str) -> None:
    peer = dial(version)
    bad = wire.connect("x", version, flags=0x03)
    peer.send(bad, wire.publish(topic, b"never", retain=True, version=version))
    peer.rest_until_end()
    watcher = join(version=version)
    watcher.subscribe(topic)
    watcher.expect_silence()


def test_packets_sent_before_the_connack_arrives_are_processed(
    dial: Dial, join: Dial, version: int, name: str, topic: str
) -> None:
    """MQTT 5.0 and 3.1.1, 3.1.4, non normative: a client need not wait for CONNACK."""
    watcher = join(version=version)
    watcher.subscribe(topic)
    peer = dial(version)
    early = wire.publish(topic, b"early", version=version)
    peer.send(wire.connect(name, version), wire.subscribe(1, [(topic, 0)], version=version), early)
    assert [peer.receive().kind for _ in range(2)] == [Kind.CONNACK, Kind.SUBACK]
    assert peer.message().payload == watcher.message().payload == b"early"


def test_keep_alive_zero_is_accepted(dial: Dial, version: int, name: str) -> None:
    assert dial(version).connect(name, keep_alive=0).code == 0


def test_a_ping_is_answered(join: Dial, version: int) -> None:
    peer = join(version=version)
    peer.send(wire.PINGREQ * 3)
    assert [peer.receive().kind for _ in range(3)] == [Kind.PINGRESP] * 3
