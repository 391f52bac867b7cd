"""Receive Maximum, both ways. MQTT 5.0, 3.3.4 and 4.9."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import PINGREQ, Kind, Packet, Prop

TESTED_AT_MOST = 5_000  # messages; a broker that allows more is not filled up here


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("limit", [1, 3])
def test_the_broker_keeps_to_the_client_s_receive_maximum(join: Dial, topic: str, qos: int, limit: int) -> None:
    """MQTT-3.3.4-9, 4.9.0-1, 4.9.0-2: no more than `limit` are on their way, however many wait."""
    peer = join(properties=[(Prop.RECEIVE_MAXIMUM, limit)])
    peer.subscribe(topic, qos=qos)
    payloads = [b"%d" % number for number in range(8)]
    join().publish_all(topic, payloads, qos)
    found: list[Packet] = []
    while len(found) < len(payloads):
        window = peer.messages(min(limit, len(payloads) - len(found)), ack=False)
        peer.expect_silence()
        found += window
        for one in window:
            peer.send(wire.ack(Kind.PUBACK if qos == 1 else Kind.PUBREC, one.packet_id))
        for one in window if qos == 2 else ():
            assert peer.expect(Kind.PUBREL).packet_id == one.packet_id
        peer.send(*[wire.ack(Kind.PUBCOMP, one.packet_id) for one in window if qos == 2])
    assert [one.payload for one in found] == payloads


def test_a_pubrec_alone_gives_no_quota_back(join: Dial, topic: str) -> None:
    """4.9: the quota grows by PUBACK, by PUBCOMP, and by PUBREC with an error."""
    peer = join(properties=[(Prop.RECEIVE_MAXIMUM, 1)])
    peer.subscribe(topic, qos=2)
    join().publish_all(topic, [b"1", b"2"], 2)
    first = peer.message(ack=False)
    peer.send(wire.ack(Kind.PUBREC, first.packet_id))
    peer.expect(Kind.PUBREL)
    peer.expect_silence()
    peer.send(wire.ack(Kind.PUBCOMP, first.packet_id))
    assert peer.message().payload == b"2"


def test_what_stands_behind_a_message_without_quota_comes_once(join: Dial, topic: str, name: str) -> None:
    """4.3.1, 4.6: QoS 0 behind a message of QoS 1 that the client cannot take yet neither passes it nor comes again."""
    session = [(Prop.RECEIVE_MAXIMUM, 1), (Prop.SESSION_EXPIRY, 600)]
    peer = join(name, properties=session)
    peer.subscribe(topic, qos=1)
    peer.leave()
    other = join()
    for number in range(4):
        other.publish(topic, b"%d" % number, 1)
        other.publish(topic, b"%d and a half" % number)
    peer = join(name, clean=False, properties=session)
    assert peer.payloads(8) == [b"%d%s" % (number, half) for number in range(4) for half in (b"", b" and a half")]
    peer.expect_silence()


def test_without_quota_all_but_qos_1_and_2_goes_on(join: Dial, topic: str) -> None:
    """MQTT-3.3.4-10 and 4.9.0-3; QoS 0 needs no quota."""
    peer = join(properties=[(Prop.RECEIVE_MAXIMUM, 1)])
    peer.subscribe(topic, qos=1)
    other = join()
    other.publish_all(topic, [b"1", b"2"], 1)
    peer.message(ack=False)
    assert peer.subscribe(f"{topic}/0", qos=0) == [0]
    assert peer.publish(f"{topic}/x", b"x", 2) in (0, 0x10)
    other.publish(f"{topic}/0", b"quotaless", 0)
    assert peer.message().payload == b"quotaless"
    assert peer.unsubscribe(f"{topic}/0") == [0]
    peer.expect_silence()


def test_a_resumed_session_begins_with_a_full_quota(join: Dial, name: str, topic: str) -> None:
    fields = {"clean": False, "properties": [(Prop.SESSION_EXPIRY, 60), (Prop.RECEIVE_MAXIMUM, 2)]}
    peer = join(name, **fields)
    peer.subscribe(topic, qos=1)
    peer.leave()
    join().publish_all(topic, [b"1", b"2", b"3"], 1)
    peer = join(name, **fields)
    found = peer.messages(2, ack=False)
    peer.expect_silence()
    peer.send(wire.ack(Kind.PUBACK, found[0].packet_id))
    assert peer.message().payload == b"3"


def test_a_client_that_exceeds_the_broker_s_receive_maximum_is_refused(join: Dial, topic: str) -> None:
    """3.3.4: more than Receive Maximum QoS 2 messages without PUBREL: DISCONNECT 0x93."""
    peer = join()
    limit = peer.connack.number(Prop.RECEIVE_MAXIMUM, 65_535)
    if limit > TESTED_AT_MOST:
        pytest.skip(f"this broker takes {limit} messages at once")
    peer.send(*[wire.publish(topic, b"", 2, number) for number in range(1, limit + 2)])
    found = [one for one in peer.rest_until_end() if one.kind != Kind.PUBREC]
    assert [(one.kind, one.code) for one in found] == [(Kind.DISCONNECT, 0x93)]


def test_a_client_may_use_the_broker_s_whole_receive_maximum(join: Dial, topic: str) -> None:
    peer = join()
    limit = min(peer.connack.number(Prop.RECEIVE_MAXIMUM, 65_535), TESTED_AT_MOST)
    peer.send(*[wire.publish(topic, b"", 2, number) for number in range(1, limit + 1)])
    assert [peer.expect(Kind.PUBREC).packet_id for _ in range(limit)] == [*range(1, limit + 1)]
    peer.send(*[wire.ack(Kind.PUBREL, number) for number in range(1, limit + 1)], PINGREQ)
    assert {peer.receive().kind for _ in range(limit)} == {Kind.PUBCOMP}
    assert peer.receive().kind == Kind.PINGRESP


def test_a_completed_message_frees_its_place(join: Dial, topic: str) -> None:
    """Many times Receive Maximum in sequence is no excess."""
    peer = join()
    for number in range(100):
        peer.send(wire.publish(topic, b"", 2, number % 3 + 1))
        peer.expect(Kind.PUBREC)
        peer.send(wire.ack(Kind.PUBREL, number % 3 + 1))
        peer.expect(Kind.PUBCOMP)


def test_a_311_client_has_no_receive_maximum_to_tell(join: Dial, topic: str) -> None:
    """The broker's own window holds instead, and all arrive in the end."""
    peer = join(version=4)
    peer.subscribe(topic, qos=1)
    payloads = [b"%d" % number for number in range(200)]
    join(version=4).publish_all(topic, payloads, 1)
    assert peer.payloads(200) == payloads
