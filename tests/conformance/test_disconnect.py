"""DISCONNECT, AUTH and what a client asks to be told. MQTT 5.0, 3.14, 3.15, 4.12, 3.1.2.11.7; 3.1.1, 3.14."""

from typing import Any

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Kind, Prop


def test_the_broker_closes_after_a_disconnect(join: Dial, version: int) -> None:
    peer = join(version=version)
    peer.send(wire.disconnect())
    assert peer.rest_until_end() == []


@pytest.mark.parametrize("form", [b"", b"\0", b"\0\0", b"\x00\x05\x11\0\0\0\0"], ids=lambda form: form.hex() or "empty")
def test_every_form_of_a_normal_disconnect_is_taken(join: Dial, form: bytes) -> None:
    """3.14.2.1: without a reason code, without a property length, with both."""
    peer = join()
    peer.send(wire.frame(0xE0, form))
    assert peer.rest_until_end() == []


@pytest.mark.parametrize("code", [0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99])
def test_every_reason_a_client_may_give_is_taken(join: Dial, code: int) -> None:
    peer = join()
    peer.send(wire.disconnect(code, [(Prop.REASON_STRING, "why"), (Prop.USER_PROPERTY, ("k", "v"))]))
    assert peer.rest_until_end() == []


def test_nothing_is_processed_after_a_disconnect(join: Dial, version: int, topic: str) -> None:
    """MQTT-3.14.4-2 (3.1.1), 3.14.4-1 (5): the client must not send more, and the broker is done with it."""
    watcher, peer = join(version=version), join(version=version)
    watcher.subscribe(topic)
    peer.send(wire.disconnect(), wire.publish(topic, b"late", version=version))
    peer.rest_until_end()
    join(version=version).publish(topic, b"marker", 1)
    assert watcher.payloads(1) == [b"marker"]


def test_all_that_was_sent_before_a_disconnect_is_delivered(join: Dial, version: int, topic: str, qos: int) -> None:
    watcher, peer = join(version=version), join(version=version)
    watcher.subscribe(topic, qos=min(qos, 1))
    qos = min(qos, 1)
    packets = [wire.publish(topic, b"%d" % n, qos, n if qos else 0, version=version) for n in range(1, 51)]
    peer.send(*packets, wire.disconnect())
    assert watcher.payloads(50) == [b"%d" % number for number in range(1, 51)]


def test_the_broker_sends_nothing_after_its_own_disconnect(join: Dial, name: str, topic: str) -> None:
    """MQTT-3.14.4-1 and 3.14.4-2."""
    first = join(name)
    first.subscribe(topic)
    join(name)
    join().publish(topic, b"x", 1)
    first.expect_refusal(0x8E)


def test_a_connection_refused_before_connack_gets_no_disconnect(dial: Dial) -> None:
    """MQTT-3.14.0-1."""
    peer = dial()
    peer.send(wire.connect("x", flags=0x03))
    peer.expect_no_connection(0x81, 0x82)


@pytest.mark.parametrize("code", [0x00, 0x18, 0x19])
def test_auth_without_a_method_in_connect_is_a_protocol_error(join: Dial, code: int) -> None:
    """MQTT-4.12.0-7, 4.12.1-1."""
    peer = join()
    peer.send(wire.auth(code, [(Prop.AUTH_METHOD, "SCRAM-SHA-1"), (Prop.AUTH_DATA, b"x")]))
    peer.expect_refusal(0x82)


def test_an_empty_auth_is_a_protocol_error(join: Dial) -> None:
    peer = join()
    peer.send(wire.frame(0xF0))
    peer.expect_refusal(0x81, 0x82)


@pytest.mark.parametrize("code", [0x01, 0x17, 0x80])
def test_auth_with_another_code_is_refused(join: Dial, code: int) -> None:
    """MQTT-3.15.2-1."""
    peer = join()
    peer.send(wire.auth(code, [(Prop.AUTH_METHOD, "SCRAM-SHA-1")]))
    peer.expect_refusal(0x81, 0x82)


@pytest.mark.parametrize("asked", [[(Prop.REQUEST_PROBLEM_INFO, 0)], []], ids=["0", "not said"])
def test_without_problem_information_only_three_packets_explain(join: Dial, topic: str, asked: Any) -> None:
    """MQTT-3.1.2-29: no Reason String nor User Property but in PUBLISH, CONNACK and DISCONNECT.

    A client that does not say so would have to expect them elsewhere; there are some that do not."""
    peer = join(properties=asked)
    peer.send(
        wire.unsubscribe(1, ["never"]),
        wire.publish(topic, b"", 1, 2),
        wire.publish(topic, b"", 2, 3),
        wire.ack(Kind.PUBREL, 99),
        wire.ack(Kind.PUBREC, 99),
        wire.ack(Kind.PUBREL, 3),
        wire.subscribe(4, [(f"$log/nonsense/{topic}", 0)]),
    )
    answers = [peer.receive()]
    while not {Kind.UNSUBACK, Kind.PUBACK, Kind.PUBREC, Kind.PUBCOMP, Kind.SUBACK} <= {a.kind for a in answers}:
        answers.append(peer.receive())
    peer.send(wire.subscribe(5, [("a/#/b", 0)]))
    for answer in [*answers, *peer.rest_until_end()]:
        assert answer.kind in (Kind.PUBLISH, Kind.DISCONNECT) or answer.properties == []


def test_the_broker_s_disconnect_has_no_session_expiry(join: Dial, name: str) -> None:
    """MQTT-3.14.2-2; `replies` refuses the property in any DISCONNECT of any test."""
    first = join(name, properties=[(Prop.SESSION_EXPIRY, 60)])
    join(name)
    (told,) = first.rest_until_end()
    assert told.kind == Kind.DISCONNECT and told.get(Prop.SESSION_EXPIRY) is None


def test_a_tour_of_all_answers_finds_them_well_formed(join: Dial, version: int, topic: str) -> None:
    """`replies` refuses any packet with reserved flags, codes or properties that it may not have."""
    peer = join(version=version)
    peer.send(wire.subscribe(1, [(topic, 2)], version=version), wire.unsubscribe(2, ["x"], version=version))
    peer.send(wire.publish(topic, b"", 1, 3, version=version), wire.publish(topic, b"", 2, 4, version=version))
    peer.send(wire.ack(Kind.PUBREL, 4), wire.PINGREQ)
    kinds: list[Kind] = []
    while Kind.PINGRESP not in kinds or kinds.count(Kind.PUBLISH) < 2:
        packet = peer.receive()
        kinds.append(packet.kind)
        if packet.kind == Kind.PUBLISH and packet.qos == 2:
            peer.send(wire.ack(Kind.PUBREC, packet.packet_id))
    while peer.receive().kind != Kind.PUBREL:
        pass
    others = [kind for kind in kinds if kind not in (Kind.PUBLISH, Kind.PUBREL)]
    assert others == [Kind.SUBACK, Kind.UNSUBACK, Kind.PUBACK, Kind.PUBREC, Kind.PUBCOMP, Kind.PINGRESP]


def test_a_ping_is_answered_while_messages_flow(join: Dial, version: int, topic: str) -> None:
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(topic)
    for _ in range(5):
        publisher.publish_all(topic, [b"x"] * 100)
        peer.pending()
