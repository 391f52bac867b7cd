"""The properties of CONNECT and CONNACK. MQTT 5.0, 3.1.2.11 and 3.2.2.3."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Prop, Properties, Will

BAD_VALUES: dict[str, Properties] = {
    "receive maximum 0": [(Prop.RECEIVE_MAXIMUM, 0)],
    "maximum packet size 0": [(Prop.MAXIMUM_PACKET_SIZE, 0)],
    "request problem information 2": [(Prop.REQUEST_PROBLEM_INFO, 2)],
    "request response information 2": [(Prop.REQUEST_RESPONSE_INFO, 2)],
    "session expiry twice": [(Prop.SESSION_EXPIRY, 1), (Prop.SESSION_EXPIRY, 1)],
    "receive maximum twice": [(Prop.RECEIVE_MAXIMUM, 9), (Prop.RECEIVE_MAXIMUM, 9)],
    "maximum packet size twice": [(Prop.MAXIMUM_PACKET_SIZE, 999), (Prop.MAXIMUM_PACKET_SIZE, 999)],
    "topic alias maximum twice": [(Prop.TOPIC_ALIAS_MAXIMUM, 1), (Prop.TOPIC_ALIAS_MAXIMUM, 1)],
    "request problem information twice": [(Prop.REQUEST_PROBLEM_INFO, 1)] * 2,
    "request response information twice": [(Prop.REQUEST_RESPONSE_INFO, 1)] * 2,
    "authentication method twice": [(Prop.AUTH_METHOD, "A"), (Prop.AUTH_METHOD, "A")],
    "authentication data without method": [(Prop.AUTH_DATA, b"x")],
}
# Every property that CONNECT has not got.
FOREIGN: dict[str, Properties] = {
    key.name.lower(): [(key, value)]
    for key, value in (
        (Prop.PAYLOAD_FORMAT, 1),
        (Prop.MESSAGE_EXPIRY, 1),
        (Prop.CONTENT_TYPE, "x"),
        (Prop.RESPONSE_TOPIC, "x"),
        (Prop.CORRELATION_DATA, b"x"),
        (Prop.SUBSCRIPTION_ID, 1),
        (Prop.ASSIGNED_CLIENT_ID, "x"),
        (Prop.SERVER_KEEP_ALIVE, 1),
        (Prop.WILL_DELAY, 1),
        (Prop.RESPONSE_INFO, "x"),
        (Prop.SERVER_REFERENCE, "x"),
        (Prop.REASON_STRING, "x"),
        (Prop.TOPIC_ALIAS, 1),
        (Prop.MAXIMUM_QOS, 1),
        (Prop.RETAIN_AVAILABLE, 1),
        (Prop.WILDCARD_AVAILABLE, 1),
        (Prop.SUBSCRIPTION_ID_AVAILABLE, 1),
        (Prop.SHARED_AVAILABLE, 1),
    )
}
BAD_WILLS: dict[str, Properties] = {
    "will delay twice": [(Prop.WILL_DELAY, 1), (Prop.WILL_DELAY, 1)],
    "payload format 2": [(Prop.PAYLOAD_FORMAT, 2)],
    "payload format twice": [(Prop.PAYLOAD_FORMAT, 1), (Prop.PAYLOAD_FORMAT, 1)],
    "message expiry twice": [(Prop.MESSAGE_EXPIRY, 1), (Prop.MESSAGE_EXPIRY, 1)],
    "content type twice": [(Prop.CONTENT_TYPE, "a"), (Prop.CONTENT_TYPE, "a")],
    "content type not UTF-8": [(Prop.CONTENT_TYPE, b"\xff")],
    "response topic twice": [(Prop.RESPONSE_TOPIC, "a"), (Prop.RESPONSE_TOPIC, "a")],
    "correlation data twice": [(Prop.CORRELATION_DATA, b"a"), (Prop.CORRELATION_DATA, b"a")],
    "user property not UTF-8": [(Prop.USER_PROPERTY, ("k", b"\xff"))],
    "a property of CONNECT": [(Prop.SESSION_EXPIRY, 1)],
    "topic alias": [(Prop.TOPIC_ALIAS, 1)],
}


@pytest.mark.parametrize("properties", BAD_VALUES.values(), ids=BAD_VALUES.keys())
def test_a_bad_value_or_a_repeated_property_is_refused(dial: Dial, name: str, properties: Properties) -> None:
    peer = dial()
    peer.send(wire.connect(name, properties=properties))
    peer.expect_no_connection(0x81, 0x82, 0x8C)


@pytest.mark.parametrize("properties", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_property_of_another_packet_is_refused(dial: Dial, name: str, properties: Properties) -> None:
    peer = dial()
    peer.send(wire.connect(name, properties=properties))
    peer.expect_no_connection(0x81, 0x82)


@pytest.mark.parametrize("properties", BAD_WILLS.values(), ids=BAD_WILLS.keys())
def test_a_bad_will_property_is_refused(dial: Dial, name: str, topic: str, properties: Properties) -> None:
    peer = dial()
    peer.send(wire.connect(name, will=Will(topic, properties=properties)))
    peer.expect_no_connection(0x81, 0x82, 0x99)


@pytest.mark.parametrize("unknown", [b"\x00\x00", b"\x04\x00", b"\x7f\x00", b"\x80\x01\x00", b"\xff\xff\x7f\x01"])
def test_an_unknown_property_is_malformed(dial: Dial, unknown: bytes) -> None:
    peer = dial()
    head = wire.text("MQTT") + bytes([5, 2, 0, 60]) + bytes([len(unknown)]) + unknown
    peer.send(wire.frame(0x10, head + wire.text("x")))
    peer.expect_no_connection(0x81, 0x82)


@pytest.mark.parametrize(
    "properties",
    [b"\x05\x11\x00\x00\x00", b"\x04\x11\x00\x00\x00", b"\x7f", b"\x80\x80\x80\x80\x01", b"\x03\x26\x00\x09"],
    ids=["cut off", "cut off exactly", "length past the end", "five-byte length", "cut string pair"],
)
def test_properties_that_overrun_are_malformed(dial: Dial, properties: bytes) -> None:
    peer = dial()
    peer.send(wire.frame(0x10, wire.text("MQTT") + bytes([5, 2, 0, 60]) + properties))
    peer.expect_no_connection(0x81, 0x82)


def test_every_property_of_connect_at_once_is_accepted(dial: Dial, name: str, topic: str) -> None:
    properties: Properties = [
        (Prop.SESSION_EXPIRY, 0),
        (Prop.RECEIVE_MAXIMUM, 65_535),
        (Prop.MAXIMUM_PACKET_SIZE, 0xFFFF_FFFF),
        (Prop.TOPIC_ALIAS_MAXIMUM, 65_535),
        (Prop.REQUEST_RESPONSE_INFO, 1),
        (Prop.REQUEST_PROBLEM_INFO, 0),
        (Prop.USER_PROPERTY, ("same", "key")),
        (Prop.USER_PROPERTY, ("same", "key")),
    ]
    will = Will(topic, properties=[(Prop.WILL_DELAY, 0), (Prop.USER_PROPERTY, ("k", "v"))])
    assert dial().connect(name, properties=properties, will=will).code == 0


def test_an_assigned_client_identifier_is_told_and_names_the_session(dial: Dial, join: Dial) -> None:
    """MQTT-3.1.3-6, 3.1.3-7, 3.2.2-16."""
    one, two = dial(), dial()
    given = [peer.connect("", properties=[(Prop.SESSION_EXPIRY, 60)]) for peer in (one, two)]
    names = [answer.get(Prop.ASSIGNED_CLIENT_ID) for answer in given]
    assert all(isinstance(one, str) and one for one in names) and names[0] != names[1]
    one.leave()
    again = dial()
    assert again.connect(str(names[0]), clean=False).session_present


def test_no_client_identifier_is_assigned_to_one_who_has_it(dial: Dial, name: str) -> None:
    assert dial().connect(name).get(Prop.ASSIGNED_CLIENT_ID) is None


def test_an_empty_client_identifier_without_clean_start_gets_a_new_session_or_0x85(dial: Dial) -> None:
    answer = dial().connect("", clean=False)
    assert answer.code in (0, 0x85) and not answer.session_present
    assert answer.code or answer.get(Prop.ASSIGNED_CLIENT_ID)


def test_response_information_comes_only_on_request(dial: Dial, name: str) -> None:
    """MQTT-3.1.2-28."""
    for properties in ([], [(Prop.REQUEST_RESPONSE_INFO, 0)]):
        assert dial().connect(name, properties=properties).get(Prop.RESPONSE_INFO) is None


def test_the_broker_allows_all_that_rumq_promises(dial: Dial, name: str) -> None:
    """QoS 2, retain, wildcards, subscription identifiers and shared subscriptions are all there."""
    answer = dial().connect(name)
    assert answer.number(Prop.MAXIMUM_QOS, 2) == 2
    able = (Prop.RETAIN_AVAILABLE, Prop.WILDCARD_AVAILABLE, Prop.SUBSCRIPTION_ID_AVAILABLE)
    assert [answer.number(key, 1) for key in (*able, Prop.SHARED_AVAILABLE)] == [1] * 4


def test_an_unknown_authentication_method_is_refused(dial: Dial, name: str) -> None:
    """MQTT-4.12.0-1: CONNACK 0x8C (or 0x87), then close; no AUTH before it."""
    peer = dial()
    peer.send(wire.connect(name, properties=[(Prop.AUTH_METHOD, "X-NOBODY"), (Prop.AUTH_DATA, b"hello")]))
    peer.expect_no_connection(0x8C, 0x87)


def test_no_authentication_method_is_told_to_one_who_named_none(dial: Dial, name: str) -> None:
    """MQTT-4.12.0-6."""
    answer = dial().connect(name)
    assert answer.get(Prop.AUTH_METHOD) is None and answer.get(Prop.AUTH_DATA) is None


@pytest.mark.parametrize("limit", [16, 64])
def test_a_connack_fits_the_client_s_maximum_packet_size(dial: Dial, limit: int) -> None:
    """MQTT-3.1.2-24, 3.2.2-19, 3.2.2-20: what does not fit is left out, or the connection ends."""
    peer = dial()
    peer.send(wire.connect("", properties=[(Prop.MAXIMUM_PACKET_SIZE, limit)]))
    answer = peer.maybe_receive()
    assert answer is None or answer.size <= limit
