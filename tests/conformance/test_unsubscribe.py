"""UNSUBSCRIBE and UNSUBACK. MQTT 5.0, 3.10 and 3.11; MQTT 3.1.1, 3.10 and 3.11."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Kind, Prop


def test_every_unsubscribe_is_answered_with_its_packet_identifier(join: Dial, version: int, topic: str) -> None:
    """Even where nothing is deleted: MQTT-3.10.4-5."""
    peer = join(version=version)
    for packet_id in (1, 77, 65_535):
        peer.send(wire.unsubscribe(packet_id, [topic], version=version))
        assert peer.expect(Kind.UNSUBACK).packet_id == packet_id


def test_after_unsuback_no_new_message_comes(join: Dial, version: int, topic: str) -> None:
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(topic, f"{topic}/kept", qos=1)
    publisher.publish(topic, b"before", 1)
    assert peer.message().payload == b"before"
    peer.unsubscribe(topic)
    publisher.publish(topic, b"after", 1)
    publisher.publish(f"{topic}/kept", b"kept", 1)
    assert peer.message().payload == b"kept"
    peer.expect_silence()


def test_an_unsuback_says_of_each_filter_what_was_there(join: Dial, topic: str) -> None:
    """MQTT-3.11.3-1: 0x00 where a subscription was deleted, 0x11 where none was, in order."""
    peer = join()
    peer.subscribe(f"{topic}/a", f"{topic}/b")
    assert peer.unsubscribe(f"{topic}/x", f"{topic}/a", f"{topic}/a", f"{topic}/b") == [0x11, 0, 0x11, 0]


def test_several_filters_in_one_unsubscribe_all_go(join: Dial, version: int, topic: str) -> None:
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(*[f"{topic}/{number}" for number in range(10)], f"{topic}/end", qos=1)
    peer.unsubscribe(*[f"{topic}/{number}" for number in range(10)])
    for number in range(10):
        publisher.publish(f"{topic}/{number}", b"gone", 1)
    publisher.publish(f"{topic}/end", b"end", 1)
    assert peer.message().payload == b"end"
    peer.expect_silence()


def test_filters_are_compared_character_by_character(join: Dial, version: int, topic: str) -> None:
    """MQTT-3.10.4-1: a filter that matches the same topics is another subscription."""
    peer = join(version=version)
    peer.subscribe(f"{topic}/+", qos=1)
    peer.unsubscribe(f"{topic}/#", f"{topic}/a", f"{topic}/+/", f"{topic.upper()}/+")
    join(version=version).publish(f"{topic}/a", b"still", 1)
    assert peer.message().payload == b"still"


def test_a_wildcard_subscription_is_deleted_by_its_filter(join: Dial, version: int, topic: str) -> None:
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe((f"{topic}/#", 1), (f"{topic}/a", 0))
    peer.unsubscribe(f"{topic}/#")
    publisher.publish(f"{topic}/b", b"gone", 1)
    publisher.publish(f"{topic}/a", b"kept", 1)
    message = peer.message()
    assert (message.payload, message.qos) == (b"kept", 0)
    peer.expect_silence()


def test_an_unsubscribe_without_filters_is_refused(join: Dial, version: int) -> None:
    peer = join(version=version)
    peer.send(wire.unsubscribe(1, [], version=version))
    peer.expect_refusal(0x81, 0x82)


def test_packet_identifier_zero_is_refused(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    peer.send(wire.unsubscribe(0, [topic], version=version))
    peer.expect_refusal(0x81, 0x82)


@pytest.mark.parametrize("bad", [b"\xff", b"a\x00b"])
def test_a_filter_must_be_utf8(join: Dial, version: int, bad: bytes) -> None:
    peer = join(version=version)
    peer.send(wire.unsubscribe(1, [bad], version=version))
    peer.expect_refusal(0x81, 0x82, 0x8F)


@pytest.mark.parametrize("qos", [1, 2])
def test_a_delivery_begun_before_unsubscribe_is_completed(join: Dial, version: int, topic: str, qos: int) -> None:
    """MQTT-3.10.4-3, across a reconnect: what was sent is sent again until it is acknowledged."""
    name = f"u{topic.replace('/', '')}"[-20:]
    fields = {"clean": False} | ({"properties": [(Prop.SESSION_EXPIRY, 60)]} if version == 5 else {})
    peer = join(name, version, **fields)
    peer.subscribe(topic, qos=qos)
    join(version=version).publish(topic, b"begun", qos)
    first = peer.message(ack=False)
    peer.unsubscribe(topic)
    peer.reset()
    again = join(name, version, **fields).message()
    assert (again.packet_id, again.payload, again.dup) == (first.packet_id, b"begun", True)


def test_subscribing_after_unsubscribing_is_a_new_subscription(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    join(version=version).publish(topic, b"kept", 1, retain=True)
    for _ in range(2):
        peer.subscribe(topic)
        assert peer.message().retain
        peer.unsubscribe(topic)
    peer.expect_silence()


def test_user_properties_are_allowed_and_others_are_not(join: Dial, topic: str) -> None:
    peer = join()
    peer.send(wire.unsubscribe(1, [topic], [(Prop.USER_PROPERTY, ("k", "v"))] * 2))
    assert peer.expect(Kind.UNSUBACK).codes == [0x11]
    peer.send(wire.unsubscribe(2, [topic], [(Prop.SUBSCRIPTION_ID, 1)]))
    peer.expect_refusal(0x81, 0x82)
