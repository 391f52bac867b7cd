"""What travels with a message to its subscribers. MQTT 5.0, 3.3.2.3; expiry over seconds: test_waiting.py."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Prop, Properties, Value

ALL: list[tuple[int, Value]] = [
    (Prop.PAYLOAD_FORMAT, 1),
    (Prop.CONTENT_TYPE, "application/json; ünï"),
    (Prop.RESPONSE_TOPIC, "answers/for/me"),
    (Prop.CORRELATION_DATA, bytes(range(256))),
    (Prop.USER_PROPERTY, ("z", "1")),
    (Prop.USER_PROPERTY, ("a", "2")),
    (Prop.USER_PROPERTY, ("z", "1")),
    (Prop.USER_PROPERTY, ("", "")),
]


@pytest.mark.parametrize("one", ALL[:4], ids=lambda one: Prop(one[0]).name.lower())
def test_a_property_reaches_the_subscriber_unaltered(join: Dial, topic: str, qos: int, one: tuple[int, Value]) -> None:
    """MQTT-3.3.2-4, 3.3.2-15, 3.3.2-16, 3.3.2-20."""
    peer = join()
    peer.subscribe(topic, qos=qos)
    join().publish(topic, b"{}", qos, properties=[one])
    assert peer.message().properties == [one]


def test_all_properties_reach_every_subscriber(join: Dial, topic: str) -> None:
    peers = [join() for _ in range(3)]
    for peer in peers:
        peer.subscribe(topic, qos=1)
    join().publish(topic, b"{}", 1, properties=ALL)
    for peer in peers:
        found = peer.message()
        assert {key: value for key, value in found.properties if key != Prop.USER_PROPERTY} == dict(ALL[:4])
        assert found.all(Prop.USER_PROPERTY) == [value for _, value in ALL[4:]]


def test_user_properties_keep_their_order_and_their_doubles(join: Dial, topic: str) -> None:
    """MQTT-3.3.2-17 and 3.3.2-18."""
    pairs: list[Value] = [(f"key{number % 3}", f"{number}") for number in range(50)]
    peer = join()
    peer.subscribe(topic)
    join().publish(topic, b"", properties=[(Prop.USER_PROPERTY, pair) for pair in pairs])
    assert peer.message().all(Prop.USER_PROPERTY) == pairs


def test_a_message_without_properties_is_given_none(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe(topic)
    join().publish(topic, b"x")
    assert peer.message().properties == []


def test_payload_format_zero_is_passed_on_or_left_out(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe(topic)
    join().publish(topic, b"\xff", properties=[(Prop.PAYLOAD_FORMAT, 0)])
    assert peer.message().number(Prop.PAYLOAD_FORMAT, 0) == 0


def test_empty_values_are_values(join: Dial, topic: str) -> None:
    properties = [(Prop.CONTENT_TYPE, ""), (Prop.CORRELATION_DATA, b"")]
    peer = join()
    peer.subscribe(topic)
    join().publish(topic, b"x", properties=properties)
    assert sorted(peer.message().properties) == sorted(properties)


def test_properties_wait_with_the_message(join: Dial, name: str, topic: str) -> None:
    lasting = [(Prop.SESSION_EXPIRY, 60)]
    peer = join(name, properties=lasting)
    peer.subscribe(topic, qos=1)
    peer.leave()
    join().publish(topic, b"{}", 1, properties=ALL)
    found = join(name, clean=False, properties=lasting).message()
    assert dict(found.properties[:4]) | dict(ALL[:4]) == dict(found.properties[:4])
    assert found.all(Prop.USER_PROPERTY) == [value for _, value in ALL[4:]]


def test_properties_do_not_reach_a_311_subscriber(join: Dial, topic: str) -> None:
    old = join(version=4)
    old.subscribe(topic, qos=1)
    join().publish(topic, b"{}", 1, properties=ALL)
    assert old.message().payload == b"{}"


def test_a_311_message_reaches_a_subscriber_without_properties(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe(topic, qos=1)
    join(version=4).publish(topic, b"x", 1)
    assert peer.message().properties == []


def test_a_message_expiry_reaches_the_subscriber(join: Dial, topic: str) -> None:
    """MQTT-3.3.2-6: less the seconds it waited, here about none."""
    peer = join()
    peer.subscribe(topic)
    join().publish(topic, b"x", properties=[(Prop.MESSAGE_EXPIRY, 1000)])
    assert 995 <= peer.message().number(Prop.MESSAGE_EXPIRY, 0) <= 1000


def test_the_longest_message_expiry_is_kept(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe(topic)
    join().publish(topic, b"x", properties=[(Prop.MESSAGE_EXPIRY, 0xFFFF_FFFF)])
    assert peer.message().number(Prop.MESSAGE_EXPIRY, 0) >= 0xFFFF_FFFF - 5


BAD: dict[str, Properties] = {
    "payload format 2": [(Prop.PAYLOAD_FORMAT, 2)],
    "payload format twice": [(Prop.PAYLOAD_FORMAT, 1)] * 2,
    "message expiry twice": [(Prop.MESSAGE_EXPIRY, 1)] * 2,
    "content type twice": [(Prop.CONTENT_TYPE, "x")] * 2,
    "content type not UTF-8": [(Prop.CONTENT_TYPE, b"\xff")],
    "content type with U+0000": [(Prop.CONTENT_TYPE, b"a\0")],
    "response topic twice": [(Prop.RESPONSE_TOPIC, "x")] * 2,
    "response topic not UTF-8": [(Prop.RESPONSE_TOPIC, b"\xff")],
    "response topic with +": [(Prop.RESPONSE_TOPIC, "a/+")],
    "response topic with #": [(Prop.RESPONSE_TOPIC, "a/#")],
    "correlation data twice": [(Prop.CORRELATION_DATA, b"x")] * 2,
    "user property name not UTF-8": [(Prop.USER_PROPERTY, (b"\xff", "v"))],
    "user property value not UTF-8": [(Prop.USER_PROPERTY, ("k", b"\xff"))],
    "user property with U+0000": [(Prop.USER_PROPERTY, ("k", b"a\0b"))],
    "subscription identifier": [(Prop.SUBSCRIPTION_ID, 1)],
    "session expiry": [(Prop.SESSION_EXPIRY, 1)],
    "reason string": [(Prop.REASON_STRING, "x")],
    "receive maximum": [(Prop.RECEIVE_MAXIMUM, 1)],
    "will delay": [(Prop.WILL_DELAY, 1)],
}


@pytest.mark.parametrize("properties", BAD.values(), ids=BAD.keys())
def test_a_bad_property_of_publish_is_refused(join: Dial, topic: str, properties: Properties) -> None:
    """MQTT-3.3.2-13, 3.3.2-14, 3.3.2-19, 3.3.4-6, 1.5.7-1, and the protocol errors of 3.3.2.3."""
    peer = join()
    peer.send(wire.publish(topic, b"x", properties=properties))
    peer.expect_refusal(0x81, 0x82, 0x90, 0x99)


def test_a_request_is_answered_through_its_response_topic(join: Dial, topic: str) -> None:
    """4.10: the request names where its answer goes, the correlation data ties the two."""
    asker, answerer = join(), join()
    asker.subscribe(f"{topic}/answer", qos=1)
    answerer.subscribe(f"{topic}/ask", qos=1)
    asked: Properties = [(Prop.RESPONSE_TOPIC, f"{topic}/answer"), (Prop.CORRELATION_DATA, b"\1\2")]
    asker.publish(f"{topic}/ask", b"?", 1, properties=asked)
    request = answerer.message()
    tie = request.get(Prop.CORRELATION_DATA)
    assert tie is not None
    answerer.publish(str(request.get(Prop.RESPONSE_TOPIC)), b"!", 1, properties=[(Prop.CORRELATION_DATA, tie)])
    answer = asker.message()
    assert (answer.payload, answer.get(Prop.CORRELATION_DATA)) == (b"!", b"\1\2")
