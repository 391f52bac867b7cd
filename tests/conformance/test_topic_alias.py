"""Topic aliases, both ways. MQTT 5.0, 3.3.2.3.4."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.peer import Peer
from tests.conformance.wire import Kind, Prop


def alias(number: int) -> list[tuple[int, int]]:
    return [(Prop.TOPIC_ALIAS, number)]


@pytest.fixture
def sender(join: Dial) -> Peer:
    """A client whom the broker allows at least two aliases."""
    peer = join()
    if peer.connack.number(Prop.TOPIC_ALIAS_MAXIMUM, 0) < 2:
        pytest.skip("this broker takes no topic aliases")
    return peer


def test_an_alias_stands_for_the_topic_it_was_given_with(sender: Peer, join: Dial, topic: str) -> None:
    watcher = join()
    watcher.subscribe(f"{topic}/#", qos=1)
    sender.publish(f"{topic}/a", b"1", 1, properties=alias(1))
    sender.publish(f"{topic}/b", b"2", 0, properties=alias(2))
    sender.publish("", b"3", 2, properties=alias(1))
    sender.publish("", b"4", 1, properties=alias(2))
    found = watcher.messages(4)
    assert sorted((one.payload, one.topic[-1]) for one in found) == [
        (b"1", "a"),
        (b"2", "b"),
        (b"3", "a"),
        (b"4", "b"),
    ]
    assert all(one.get(Prop.TOPIC_ALIAS) is None for one in found)


def test_an_alias_given_again_stands_for_the_new_topic(sender: Peer, join: Dial, topic: str) -> None:
    watcher = join()
    watcher.subscribe(f"{topic}/#", qos=1)
    for name in ("a", "b"):
        sender.publish(f"{topic}/{name}", b"x", 1, properties=alias(1))
        sender.publish("", b"x", 1, properties=alias(1))
    assert [one.topic[-1] for one in watcher.messages(4)] == ["a", "a", "b", "b"]


def test_the_greatest_alias_may_be_used(sender: Peer, join: Dial, topic: str) -> None:
    """MQTT-3.3.2-12: every value from 1 to the maximum the broker announced."""
    watcher = join()
    watcher.subscribe(topic)
    most = sender.connack.number(Prop.TOPIC_ALIAS_MAXIMUM, 0)
    sender.publish(topic, b"1", properties=alias(most))
    sender.publish("", b"2", properties=alias(most))
    assert watcher.payloads(2) == [b"1", b"2"]


def test_all_aliases_at_once(sender: Peer, join: Dial, topic: str) -> None:
    watcher = join()
    watcher.subscribe(f"{topic}/#", qos=1)
    most = min(sender.connack.number(Prop.TOPIC_ALIAS_MAXIMUM, 0), 100)
    for number in range(1, most + 1):
        sender.publish(f"{topic}/{number}", b"", 0, properties=alias(number))
    for number in range(1, most + 1):
        sender.publish("", b"%d" % number, 1, properties=alias(number))
    found = {one.topic: one.payload for one in watcher.messages(2 * most)}
    assert found == {f"{topic}/{number}": b"%d" % number for number in range(1, most + 1)}


def test_alias_zero_is_refused(sender: Peer, topic: str) -> None:
    """MQTT-3.3.2-8."""
    sender.send(wire.publish(topic, b"x", properties=alias(0)))
    sender.expect_refusal(0x94, 0x81, 0x82)


def test_an_alias_above_the_maximum_is_refused(sender: Peer, topic: str) -> None:
    most = sender.connack.number(Prop.TOPIC_ALIAS_MAXIMUM, 0)
    if most == 65_535:
        pytest.skip("this broker takes every alias")
    sender.send(wire.publish(topic, b"x", properties=alias(most + 1)))
    sender.expect_refusal(0x94)


def test_an_alias_that_was_never_given_is_refused(sender: Peer) -> None:
    """3.3.2.3.4: a Protocol Error."""
    sender.send(wire.publish("", b"x", properties=alias(1)))
    sender.expect_refusal(0x82, 0x94)


def test_an_empty_topic_without_alias_is_refused(sender: Peer) -> None:
    sender.send(wire.publish("", b"x"))
    sender.expect_refusal(0x82, 0x90)


def test_an_alias_twice_in_one_packet_is_refused(sender: Peer, topic: str) -> None:
    sender.send(wire.publish(topic, b"x", properties=alias(1) * 2))
    sender.expect_refusal(0x81, 0x82)


def test_aliases_end_with_their_connection(sender: Peer, join: Dial, name: str, topic: str) -> None:
    """MQTT-3.3.2-7, though the session goes on."""
    lasting = [(Prop.SESSION_EXPIRY, 60)]
    peer = join(name, properties=lasting)
    peer.publish(topic, b"x", 1, properties=alias(1))
    peer.leave()
    peer = join(name, clean=False, properties=lasting)
    assert peer.connack.session_present
    peer.send(wire.publish("", b"x", properties=alias(1)))
    peer.expect_refusal(0x82, 0x94)


def test_aliases_of_two_clients_do_not_meet(sender: Peer, join: Dial, topic: str) -> None:
    watcher, other = join(), join()
    watcher.subscribe(f"{topic}/#", qos=1)
    sender.publish(f"{topic}/a", b"", 1, properties=alias(1))
    other.publish(f"{topic}/b", b"", 1, properties=alias(1))
    sender.publish("", b"", 1, properties=alias(1))
    other.publish("", b"", 1, properties=alias(1))
    assert [one.topic[-1] for one in watcher.messages(4)] == ["a", "b", "a", "b"]


def resolved(peer: Peer, count: int, most: int) -> list[str]:
    """Topics of `count` messages, through the aliases the broker chose to use."""
    known: dict[int, str] = {}
    topics = []
    for message in peer.messages(count):
        number = message.number(Prop.TOPIC_ALIAS, 0)
        assert number <= most, f"alias {number} above the client's maximum {most}"
        if message.topic and number:
            known[number] = message.topic
        topics.append(message.topic or known[number])
    return topics


@pytest.mark.parametrize("most", [0, 1, 3])
def test_the_broker_keeps_to_the_client_s_alias_maximum(join: Dial, topic: str, most: int) -> None:
    """MQTT-3.1.2-26, 3.1.2-27, 3.3.2-11: and whatever it does with aliases, the topics come out right."""
    peer = join(properties=[(Prop.TOPIC_ALIAS_MAXIMUM, most)] if most else [])
    peer.subscribe(f"{topic}/#", qos=1)
    publisher = join()
    names = [f"{topic}/{number % 5}" for number in range(20)]
    for name in names:
        publisher.publish(name, b"x", 1)
    assert resolved(peer, 20, most) == names


def test_the_broker_s_aliases_end_with_their_connection(join: Dial, name: str, topic: str) -> None:
    fields = {"properties": [(Prop.SESSION_EXPIRY, 60), (Prop.TOPIC_ALIAS_MAXIMUM, 5)]}
    peer = join(name, **fields)
    peer.subscribe(topic, qos=1)
    publisher = join()
    for _ in range(2):
        publisher.publish_all(topic, [b"1", b"2"], 1)
        assert resolved(peer, 2, 5) == [topic, topic]
        peer.leave()
        peer = join(name, clean=False, **fields)


def test_a_message_sent_again_has_its_topic_whole(join: Dial, name: str, topic: str) -> None:
    fields = {"properties": [(Prop.SESSION_EXPIRY, 60), (Prop.TOPIC_ALIAS_MAXIMUM, 5)]}
    peer = join(name, **fields)
    peer.subscribe(topic, qos=1)
    join().publish_all(topic, [b"1", b"2"], 1)
    peer.messages(2, ack=False)
    peer.reset()
    assert resolved(join(name, clean=False, **fields), 2, 5) == [topic, topic]


def test_a_311_client_never_sees_an_alias(sender: Peer, join: Dial, topic: str) -> None:
    old = join(version=4)
    old.subscribe(topic)
    sender.publish(topic, b"1", properties=alias(1))
    sender.publish("", b"2", properties=alias(1))
    assert [one.topic for one in old.messages(2)] == [topic, topic]
    old.send(wire.PINGREQ)
    assert old.receive().kind == Kind.PINGRESP
