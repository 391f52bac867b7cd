"""Retained messages. MQTT 5.0, 3.3.1.3; MQTT 3.1.1, 3.3.1.3."""

import pytest

from tests.conformance.conftest import Dial
from tests.conformance.wire import Prop

RETAIN_AS_PUBLISHED = 0x08
ONLY_WHEN_NEW, NEVER = 0x10, 0x20


def test_a_retained_message_greets_a_new_subscriber(join: Dial, version: int, topic: str, qos: int) -> None:
    join(version=version).publish(topic, b"kept", 2, retain=True)
    peer = join(version=version)
    peer.subscribe(topic, qos=qos)
    found = peer.message()
    assert (found.topic, found.payload, found.retain) == (topic, b"kept", True)
    assert (found.qos, found.dup) == (qos, False)
    peer.expect_silence()


def test_a_retained_message_comes_with_the_lesser_qos(join: Dial, version: int, topic: str, qos: int) -> None:
    join(version=version).publish(topic, b"kept", qos, retain=True)
    peer = join(version=version)
    peer.subscribe(topic, qos=2)
    assert peer.message().qos == qos


def test_a_live_message_is_not_marked_retained(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    peer.subscribe(topic)
    join(version=version).publish(topic, b"live", retain=True)
    assert not peer.message().retain


def test_only_the_last_retained_message_is_kept(join: Dial, version: int, topic: str) -> None:
    publisher = join(version=version)
    for payload in (b"one", b"two", b"three"):
        publisher.publish(topic, payload, 1, retain=True)
    peer = join(version=version)
    peer.subscribe(topic)
    assert peer.payloads(1) == [b"three"]
    peer.expect_silence()


def test_a_retained_qos_0_message_replaces_what_was_kept(join: Dial, version: int, topic: str) -> None:
    """MQTT-3.3.1-7 of 3.1.1: the older one is discarded whatever becomes of the new one."""
    publisher = join(version=version)
    publisher.publish(topic, b"old", 2, retain=True)
    publisher.publish(topic, b"new", 0, retain=True)
    publisher.publish(f"{topic}/barrier", b"", 1)
    peer = join(version=version)
    peer.subscribe(topic)
    assert peer.payloads(1) == [b"new"]


def test_a_message_without_retain_leaves_the_kept_one(join: Dial, version: int, topic: str) -> None:
    publisher = join(version=version)
    publisher.publish(topic, b"kept", 1, retain=True)
    publisher.publish(topic, b"passing", 1)
    publisher.publish(topic, b"", 1)
    peer = join(version=version)
    peer.subscribe(topic)
    assert peer.payloads(1) == [b"kept"]
    peer.expect_silence()


def test_an_empty_retained_message_clears_the_kept_one_and_is_delivered(join: Dial, version: int, topic: str) -> None:
    publisher, live = join(version=version), join(version=version)
    publisher.publish(topic, b"kept", 1, retain=True)
    live.subscribe(topic)
    assert live.message().retain
    publisher.publish(topic, b"", 1, retain=True)
    cleared = live.message()
    assert (cleared.payload, cleared.retain) == (b"", False)
    late = join(version=version)
    late.subscribe(topic)
    late.expect_silence()


def test_an_empty_retained_message_is_never_stored(join: Dial, version: int, topic: str) -> None:
    join(version=version).publish(topic, b"", 1, retain=True)
    peer = join(version=version)
    peer.subscribe((topic, 0x08 if version == 5 else 0))
    peer.expect_silence()


def test_every_matching_retained_message_is_sent(join: Dial, version: int, topic: str) -> None:
    publisher = join(version=version)
    names = {f"{topic}/{name}" for name in ("a", "b", "b/c", "d/e/f", "")}
    for name in names:
        publisher.publish(name, name.encode(), 1, retain=True)
    publisher.publish(f"{topic}x", b"not below", 1, retain=True)
    peer = join(version=version)
    peer.subscribe(f"{topic}/#", qos=1)
    found = peer.messages(5)
    assert {(one.topic, one.payload) for one in found} == {(name, name.encode()) for name in names}
    peer.expect_silence()
    other = join(version=version)
    other.subscribe(f"{topic}/+")
    assert {one.topic for one in other.messages(3)} == {f"{topic}/a", f"{topic}/b", f"{topic}/"}
    other.expect_silence()


def test_subscribing_again_sends_the_retained_message_again(join: Dial, version: int, topic: str) -> None:
    """MQTT-3.8.4-3 of 3.1.1; 3.8.4-4 of 5, with Retain Handling 0."""
    join(version=version).publish(topic, b"kept", 1, retain=True)
    peer = join(version=version)
    for _ in range(3):
        peer.subscribe(topic, qos=1)
        assert peer.message().retain
    peer.expect_silence()


def test_retained_messages_come_once_for_each_overlapping_subscription(join: Dial, topic: str) -> None:
    """3.3.1.3: each new subscription is sent what matches it, so at least one copy arrives for each."""
    join().publish(topic, b"kept", 1, retain=True)
    peer = join()
    peer.subscribe(topic)
    assert peer.payloads(1) == [b"kept"]
    peer.subscribe(f"{topic}/#")
    assert peer.payloads(1) == [b"kept"]


def test_a_large_retained_message_is_kept_whole(join: Dial, version: int, topic: str) -> None:
    payload = bytes(range(256)) * 1000
    join(version=version).publish(topic, payload, 1, retain=True)
    peer = join(version=version)
    peer.subscribe(topic)
    assert peer.message().payload == payload


def test_retain_handling_1_greets_only_a_new_subscription(join: Dial, topic: str) -> None:
    join().publish(topic, b"kept", 1, retain=True)
    peer = join()
    peer.subscribe((topic, ONLY_WHEN_NEW))
    assert peer.payloads(1) == [b"kept"]
    peer.subscribe((topic, ONLY_WHEN_NEW | 1))
    peer.expect_silence()
    peer.unsubscribe(topic)
    peer.subscribe((topic, ONLY_WHEN_NEW))
    assert peer.payloads(1) == [b"kept"]


def test_retain_handling_1_counts_a_subscription_that_the_session_kept(join: Dial, name: str, topic: str) -> None:
    lasting = [(Prop.SESSION_EXPIRY, 60)]
    join().publish(topic, b"kept", 1, retain=True)
    peer = join(name, properties=lasting)
    peer.subscribe((topic, ONLY_WHEN_NEW))
    assert peer.payloads(1) == [b"kept"]
    peer.leave()
    peer = join(name, clean=False, properties=lasting)
    peer.subscribe((topic, ONLY_WHEN_NEW))
    peer.expect_silence()


def test_retain_handling_2_never_greets(join: Dial, topic: str) -> None:
    publisher = join()
    publisher.publish(topic, b"kept", 1, retain=True)
    peer = join()
    peer.subscribe((topic, NEVER))
    publisher.publish(topic, b"live", 1)
    assert peer.payloads(1) == [b"live"]
    peer.expect_silence()


def test_retain_handling_is_each_filter_s_own(join: Dial, topic: str) -> None:
    publisher = join()
    for name in "abc":
        publisher.publish(f"{topic}/{name}", name.encode(), 1, retain=True)
    peer = join()
    peer.subscribe((f"{topic}/a", 0), (f"{topic}/b", ONLY_WHEN_NEW), (f"{topic}/c", NEVER))
    assert sorted(peer.payloads(2)) == [b"a", b"b"]
    peer.expect_silence()


@pytest.mark.parametrize("retain", [False, True])
def test_retain_as_published_keeps_the_flag_as_it_was(join: Dial, topic: str, retain: bool) -> None:
    """MQTT-3.3.1-13 and 3.3.1-12."""
    kept, cleared = join(), join()
    kept.subscribe((topic, RETAIN_AS_PUBLISHED))
    cleared.subscribe((topic, 0))
    join().publish(topic, b"live", 1, retain=retain)
    assert (kept.message().retain, cleared.message().retain) == (retain, False)


def test_a_greeting_is_marked_retained_without_retain_as_published(join: Dial, topic: str) -> None:
    join().publish(topic, b"kept", 1, retain=True)
    peer = join()
    peer.subscribe((topic, 0))
    assert peer.message().retain


def test_a_retained_message_keeps_its_properties(join: Dial, topic: str) -> None:
    properties = [
        (Prop.PAYLOAD_FORMAT, 1),
        (Prop.CONTENT_TYPE, "text/plain"),
        (Prop.RESPONSE_TOPIC, "answer"),
        (Prop.CORRELATION_DATA, b"\0\xff"),
        (Prop.USER_PROPERTY, ("k", "2")),
        (Prop.USER_PROPERTY, ("k", "1")),
    ]
    join().publish(topic, b"kept", 1, retain=True, properties=properties)
    peer = join()
    peer.subscribe(topic)
    assert sorted(peer.message().properties[:4]) == sorted(properties[:4])
    peer.subscribe(topic)
    assert peer.message().all(Prop.USER_PROPERTY) == [("k", "2"), ("k", "1")]


def test_a_retained_message_crosses_versions(join: Dial, topic: str) -> None:
    join(version=5).publish(topic, b"5", 1, retain=True, properties=[(Prop.CONTENT_TYPE, "x")])
    old = join(version=4)
    old.subscribe(topic)
    assert old.message().payload == b"5"
    old.publish(topic, b"4", 1, retain=True)
    new = join(version=5)
    new.subscribe(topic)
    found = new.message()
    assert (found.payload, found.properties) == (b"4", [])


def test_unacknowledged_greetings_are_part_of_the_session(join: Dial, name: str, topic: str) -> None:
    lasting = [(Prop.SESSION_EXPIRY, 60)]
    join().publish(topic, b"kept", 1, retain=True)
    peer = join(name, properties=lasting)
    peer.subscribe(topic, qos=1)
    first = peer.message(ack=False)
    peer.reset()
    again = join(name, clean=False, properties=lasting).message(ack=False)
    assert (again.packet_id, again.payload, again.dup) == (first.packet_id, b"kept", True)


def test_a_retained_topic_that_starts_with_a_dollar_is_hidden_from_wildcards(
    join: Dial, version: int, topic: str
) -> None:
    join(version=version).publish(f"$hidden/{topic}", b"x", 1, retain=True)
    peer = join(version=version)
    peer.subscribe(f"+/{topic}")
    peer.expect_silence()
    peer.subscribe(f"$hidden/{topic}")
    assert peer.message().payload == b"x"
