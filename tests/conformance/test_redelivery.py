"""What is sent again after a connection is lost, and what is not. MQTT 5.0 and 3.1.1, 4.3 and 4.4."""

from typing import Any

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Kind, Prop


def lasting(version: int, **more: Any) -> dict[str, Any]:
    if version < 5:
        return {"clean": False}
    return {"clean": False, "properties": [(Prop.SESSION_EXPIRY, 300), *more.get("properties", [])]}


@pytest.mark.parametrize("qos", [1, 2])
def test_unacknowledged_messages_are_sent_again_with_their_identifiers_in_order(
    join: Dial, version: int, name: str, topic: str, qos: int
) -> None:
    """MQTT-4.4.0-1, 4.6.0-1, 3.3.1-1: DUP set, same packet identifiers, same order."""
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=qos)
    join(version=version).publish_all(topic, [b"1", b"2", b"3", b"4", b"5"], qos)
    first = peer.messages(5, ack=False)
    peer.reset()
    again = join(name, version, **lasting(version)).messages(5)
    assert [(one.packet_id, one.payload) for one in again] == [(one.packet_id, one.payload) for one in first]
    assert all(one.dup and one.qos == qos for one in again)


@pytest.mark.parametrize("qos", [1, 2])
def test_only_what_is_unacknowledged_is_sent_again(join: Dial, version: int, name: str, topic: str, qos: int) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=qos)
    join(version=version).publish_all(topic, [b"1", b"2", b"3"], qos)
    first = peer.messages(3, ack=False)
    done = first[1].packet_id
    if qos == 1:
        peer.send(wire.ack(Kind.PUBACK, done))
    else:
        peer.send(wire.ack(Kind.PUBREC, done))
        peer.expect(Kind.PUBREL)
        peer.send(wire.ack(Kind.PUBCOMP, done))
    peer.expect_silence()
    peer.reset()
    peer = join(name, version, **lasting(version))
    assert peer.payloads(2) == [b"1", b"3"]
    peer.expect_silence()


def test_a_pubrel_without_pubcomp_is_sent_again_and_its_publish_is_not(
    join: Dial, version: int, name: str, topic: str
) -> None:
    """MQTT-4.3.3-5, 4.3.3-6 and 4.4.0-1 (5); 4.3.3-1 (3.1.1)."""
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=2)
    join(version=version).publish(topic, b"x", 2)
    packet_id = peer.message(ack=False).packet_id
    peer.send(wire.ack(Kind.PUBREC, packet_id))
    assert peer.expect(Kind.PUBREL).packet_id == packet_id
    peer.reset()
    peer = join(name, version, **lasting(version))
    assert peer.receive().kind == Kind.PUBREL
    peer.send(wire.ack(Kind.PUBCOMP, packet_id))
    peer.expect_silence()
    peer.reset()
    join(name, version, **lasting(version)).expect_silence()


def test_publishes_and_pubrels_are_both_sent_again(join: Dial, version: int, name: str, topic: str) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=2)
    join(version=version).publish_all(topic, [b"1", b"2", b"3"], 2)
    first = peer.messages(3, ack=False)
    peer.send(wire.ack(Kind.PUBREC, first[0].packet_id))
    peer.expect(Kind.PUBREL)
    peer.reset()
    peer = join(name, version, **lasting(version))
    found = [peer.receive() for _ in range(3)]
    kinds = {one.packet_id: one.kind for one in found}
    assert kinds == {
        first[0].packet_id: Kind.PUBREL,
        first[1].packet_id: Kind.PUBLISH,
        first[2].packet_id: Kind.PUBLISH,
    }


@pytest.mark.parametrize("qos", [1, 2])
def test_nothing_is_sent_again_on_a_living_connection(join: Dial, version: int, topic: str, qos: int) -> None:
    """MQTT-4.4.0-1 of 5; test_waiting.py looks for longer."""
    peer = join(version=version)
    peer.subscribe(topic, qos=qos)
    join(version=version).publish(topic, b"x", qos)
    peer.message(ack=False)
    for _ in range(3):
        peer.expect_silence()


def test_what_was_sent_again_is_still_unacknowledged_the_next_time(
    join: Dial, version: int, name: str, topic: str
) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=1)
    join(version=version).publish(topic, b"x", 1)
    found = [peer.message(ack=False)]
    for _ in range(3):
        peer.reset()
        peer = join(name, version, **lasting(version))
        found.append(peer.message(ack=False))
    assert len({one.packet_id for one in found}) == 1
    assert [one.dup for one in found] == [False, True, True, True]


def test_old_messages_come_before_those_that_waited(join: Dial, version: int, name: str, topic: str) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=1)
    publisher = join(version=version)
    publisher.publish_all(topic, [b"1", b"2"], 1)
    peer.messages(2, ack=False)
    peer.reset()
    publisher.publish_all(topic, [b"3", b"4"], 1)
    found = join(name, version, **lasting(version)).messages(4)
    assert [one.payload for one in found] == [b"1", b"2", b"3", b"4"]
    assert [one.dup for one in found] == [True, True, False, False]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_new_message_takes_no_identifier_that_is_in_use(
    join: Dial, version: int, name: str, topic: str, qos: int
) -> None:
    """MQTT-2.2.1-4, 4.3.2-1 and 4.3.3-1."""
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=qos)
    publisher = join(version=version)
    publisher.publish_all(topic, [b"1", b"2", b"3"], qos)
    used = {one.packet_id for one in peer.messages(3, ack=False)}
    peer.reset()
    peer = join(name, version, **lasting(version))
    peer.messages(3, ack=False)
    publisher.publish_all(topic, [b"4", b"5"], qos)
    assert not used & {one.packet_id for one in peer.messages(2, ack=False)}


def test_a_publisher_s_open_qos_2_message_stays_one_over_a_reconnect(
    join: Dial, version: int, name: str, topic: str
) -> None:
    """MQTT-4.3.3-10: PUBREC again and no second delivery, on the next connection too."""
    watcher = join(version=version)
    watcher.subscribe(topic, qos=2)
    peer = join(name, version, **lasting(version))
    peer.send(wire.publish(topic, b"once", 2, 9, version=version))
    assert peer.expect(Kind.PUBREC).packet_id == 9
    peer.reset()
    peer = join(name, version, **lasting(version))
    peer.send(wire.publish(topic, b"once", 2, 9, dup=True, version=version))
    assert peer.expect(Kind.PUBREC).packet_id == 9
    peer.send(wire.ack(Kind.PUBREL, 9))
    assert peer.expect(Kind.PUBCOMP).packet_id == 9
    peer.publish(topic, b"end", 1)
    assert watcher.payloads(2) == [b"once", b"end"]


def test_a_publisher_s_pubrel_is_answered_over_a_reconnect(join: Dial, version: int, name: str, topic: str) -> None:
    watcher = join(version=version)
    watcher.subscribe(topic, qos=2)
    peer = join(name, version, **lasting(version))
    peer.send(wire.publish(topic, b"once", 2, 9, version=version))
    peer.expect(Kind.PUBREC)
    peer.reset()
    peer = join(name, version, **lasting(version))
    peer.send(wire.ack(Kind.PUBREL, 9))
    answer = peer.expect(Kind.PUBCOMP)
    assert (answer.packet_id, answer.code) == (9, 0)
    assert watcher.payloads(1) == [b"once"]
    watcher.expect_silence()


def test_after_a_clean_start_an_open_identifier_is_a_new_message(
    join: Dial, version: int, name: str, topic: str
) -> None:
    watcher = join(version=version)
    watcher.subscribe(topic, qos=2)
    peer = join(name, version, **lasting(version))
    peer.send(wire.publish(topic, b"never released", 2, 9, version=version))
    peer.expect(Kind.PUBREC)
    peer.reset()
    peer = join(name, version, clean=True)
    peer.send(wire.publish(topic, b"new", 2, 9, version=version))
    peer.expect(Kind.PUBREC)
    peer.send(wire.ack(Kind.PUBREL, 9))
    peer.expect(Kind.PUBCOMP)
    first = watcher.message().payload  # 4.3.3: onward delivery may begin before PUBREL or after it
    assert first == b"new" or (first == b"never released" and watcher.message().payload == b"new")


def test_a_qos_0_message_is_never_sent_again(join: Dial, version: int, name: str, topic: str) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=0)
    join(version=version).publish(topic, b"x")
    peer.message()
    peer.reset()
    join(name, version, **lasting(version)).expect_silence()


def test_redelivery_keeps_to_a_smaller_receive_maximum(join: Dial, name: str, topic: str) -> None:
    """MQTT-3.3.4-9: the quota is the new connection's."""
    peer = join(name, **lasting(5))
    peer.subscribe(topic, qos=1)
    join().publish_all(topic, [b"1", b"2", b"3", b"4"], 1)
    first = peer.messages(4, ack=False)
    peer.reset()
    peer = join(name, **lasting(5, properties=[(Prop.RECEIVE_MAXIMUM, 2)]))
    found = peer.messages(2, ack=False)
    peer.expect_silence()
    peer.send(*[wire.ack(Kind.PUBACK, one.packet_id) for one in found])
    found += peer.messages(2)
    assert [one.payload for one in found] == [b"1", b"2", b"3", b"4"]
    assert [one.packet_id for one in found] == [one.packet_id for one in first]


def test_redelivery_crosses_versions(join: Dial, name: str, topic: str) -> None:
    """The session belongs to the client identifier, not to the protocol it spoke last."""
    peer = join(name, 4, clean=False)
    peer.subscribe(topic, qos=1)
    join().publish(topic, b"x", 1, properties=[(Prop.CONTENT_TYPE, "kept")])
    first = peer.message(ack=False)
    peer.reset()
    again = join(name, **lasting(5)).message()
    assert (again.packet_id, again.payload, again.dup) == (first.packet_id, b"x", True)
