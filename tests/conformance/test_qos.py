"""The QoS flows on a living connection, from both sides. MQTT 5.0 and 3.1.1, 4.3; 2.2.1 and 4.6."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Kind, Prop


def test_a_qos_0_publish_is_not_answered(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    peer.publish(topic, b"x")
    peer.expect_silence()


def test_a_qos_1_publish_is_answered_by_puback(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    for packet_id in (1, 65_535, 256):
        peer.send(wire.publish(topic, b"x", 1, packet_id, version=version))
        answer = peer.expect(Kind.PUBACK)
        assert answer.packet_id == packet_id and answer.code in (0, 0x10)
    peer.expect_silence()


def test_a_qos_2_publish_goes_through_four_packets(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    for packet_id in (1, 65_535, 256):
        peer.send(wire.publish(topic, b"x", 2, packet_id, version=version))
        answer = peer.expect(Kind.PUBREC)
        assert answer.packet_id == packet_id and answer.code in (0, 0x10)
        peer.send(wire.ack(Kind.PUBREL, packet_id))
        assert peer.expect(Kind.PUBCOMP).packet_id == packet_id
    peer.expect_silence()


def test_the_broker_s_publish_is_fresh_and_numbered(join: Dial, version: int, topic: str, qos: int) -> None:
    """DUP 0 at first, a packet identifier only above QoS 0, none twice while in use."""
    peer = join(version=version)
    peer.subscribe(topic, qos=qos)
    join(version=version).publish_all(topic, [b"%d" % number for number in range(10)], qos)
    found = peer.messages(10, ack=False)
    assert {(one.qos, one.dup) for one in found} == {(qos, False)}
    assert len({one.packet_id for one in found}) == (10 if qos else 1)


@pytest.mark.parametrize("qos", [1, 2])
def test_the_dup_flag_of_a_publisher_is_not_passed_on(join: Dial, version: int, topic: str, qos: int) -> None:
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(topic, qos=qos)
    publisher.publish(topic, b"x", qos, dup=True)
    assert not peer.message().dup


def test_a_qos_2_delivery_goes_through_four_packets(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    peer.subscribe(topic, qos=2)
    join(version=version).publish(topic, b"x", 2)
    packet_id = peer.message(ack=False).packet_id
    peer.send(wire.ack(Kind.PUBREC, packet_id))
    assert peer.expect(Kind.PUBREL).packet_id == packet_id
    peer.send(wire.ack(Kind.PUBCOMP, packet_id))
    peer.expect_silence()


def test_a_repeated_qos_2_publish_is_answered_again_and_delivered_once(join: Dial, version: int, topic: str) -> None:
    """MQTT-4.3.3-10 (5), 4.3.3-2 (3.1.1)."""
    watcher, peer = join(version=version), join(version=version)
    watcher.subscribe(topic, qos=2)
    for dup in (False, True, True):
        peer.send(wire.publish(topic, b"once", 2, 7, dup=dup, version=version))
        assert peer.expect(Kind.PUBREC).packet_id == 7
    peer.send(wire.ack(Kind.PUBREL, 7))
    assert peer.expect(Kind.PUBCOMP).packet_id == 7
    peer.publish(topic, b"end", 2)
    assert watcher.payloads(2) == [b"once", b"end"]
    watcher.expect_silence()


def test_after_pubcomp_the_same_identifier_is_a_new_message(join: Dial, version: int, topic: str) -> None:
    """MQTT-4.3.3-12 (5), 4.3.3-2 (3.1.1), whatever the DUP flag."""
    watcher, peer = join(version=version), join(version=version)
    watcher.subscribe(topic, qos=2)
    for payload, dup in ((b"1", False), (b"2", True)):
        peer.send(wire.publish(topic, payload, 2, 7, dup=dup, version=version))
        peer.expect(Kind.PUBREC)
        peer.send(wire.ack(Kind.PUBREL, 7))
        peer.expect(Kind.PUBCOMP)
    assert watcher.payloads(2) == [b"1", b"2"]


def test_after_puback_the_same_identifier_is_a_new_message(join: Dial, version: int, topic: str) -> None:
    """MQTT-4.3.2-5 (5), 4.3.2-2 (3.1.1), whatever the DUP flag."""
    watcher, peer = join(version=version), join(version=version)
    watcher.subscribe(topic, qos=1)
    for payload, dup in ((b"1", False), (b"2", True)):
        peer.send(wire.publish(topic, payload, 1, 7, dup=dup, version=version))
        peer.expect(Kind.PUBACK)
    assert watcher.payloads(2) == [b"1", b"2"]


def test_identifiers_of_the_two_directions_do_not_meet(join: Dial, version: int, topic: str) -> None:
    """2.2.1: the same identifier may be in use both ways at once."""
    peer = join(version=version)
    peer.subscribe(topic, qos=2)
    join(version=version).publish(topic, b"theirs", 2)
    theirs = peer.message(ack=False).packet_id
    peer.send(wire.publish(f"{topic}/other", b"mine", 2, theirs, version=version))
    assert peer.expect(Kind.PUBREC).packet_id == theirs
    peer.send(wire.ack(Kind.PUBREC, theirs), wire.ack(Kind.PUBREL, theirs))
    assert {peer.receive().kind, peer.receive().kind} == {Kind.PUBREL, Kind.PUBCOMP}
    peer.send(wire.ack(Kind.PUBCOMP, theirs))
    peer.expect_silence()


def test_a_repeated_pubrec_gets_pubrel_again(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    peer.subscribe(topic, qos=2)
    join(version=version).publish(topic, b"x", 2)
    packet_id = peer.message(ack=False).packet_id
    for _ in range(2):
        peer.send(wire.ack(Kind.PUBREC, packet_id))
        assert peer.expect(Kind.PUBREL).packet_id == packet_id


def test_a_pubrel_that_nobody_awaits_gets_pubcomp(join: Dial, version: int) -> None:
    """3.7.2.1: MQTT 5 says 0x92 in it; 3.1.1 has one answer only."""
    peer = join(version=version)
    peer.send(wire.ack(Kind.PUBREL, 4321))
    answer = peer.expect(Kind.PUBCOMP)
    assert (answer.packet_id, answer.code) == (4321, 0x92 if version == 5 else 0)


def test_a_pubrec_that_nobody_awaits_gets_pubrel_0x92(join: Dial) -> None:
    """3.6.2.1."""
    peer = join()
    peer.send(wire.ack(Kind.PUBREC, 4321))
    answer = peer.expect(Kind.PUBREL)
    assert (answer.packet_id, answer.code) == (4321, 0x92)


@pytest.mark.parametrize("kind", [Kind.PUBACK, Kind.PUBCOMP])
def test_an_acknowledgement_that_nobody_awaits_does_no_harm(join: Dial, version: int, topic: str, kind: Kind) -> None:
    """4.13.2 leaves the connection open or ends it; others are served either way."""
    peer = join(version=version)
    peer.send(wire.ack(kind, 4321), wire.PINGREQ)
    answer = peer.maybe_receive()
    assert answer is None or answer.kind in (Kind.PINGRESP, Kind.DISCONNECT)
    other = join(version=version)
    other.subscribe(topic, qos=1)
    other.publish(topic, b"served", 1)
    assert other.message().payload == b"served"


def test_a_pubrec_with_an_error_ends_the_delivery(join: Dial, topic: str) -> None:
    """MQTT-4.3.3-4 and 4.4.0-2: no PUBREL follows, the identifier is free, nothing is sent again."""
    peer = join(properties=[(Prop.RECEIVE_MAXIMUM, 1)])
    peer.subscribe(topic, qos=2)
    publisher = join()
    publisher.publish_all(topic, [b"refused", b"next"], 2)
    first = peer.message(ack=False)
    peer.send(wire.ack(Kind.PUBREC, first.packet_id, 0x83))
    assert peer.message().payload == b"next"
    peer.expect_silence()


def test_a_puback_with_an_error_ends_the_delivery(join: Dial, name: str, topic: str) -> None:
    lasting = [(Prop.SESSION_EXPIRY, 60), (Prop.RECEIVE_MAXIMUM, 1)]
    peer = join(name, properties=lasting)
    peer.subscribe(topic, qos=1)
    join().publish_all(topic, [b"refused", b"next"], 1)
    first = peer.message(ack=False)
    peer.send(wire.ack(Kind.PUBACK, first.packet_id, 0x80, [(Prop.REASON_STRING, "no room")]))
    assert peer.message().payload == b"next"
    peer.leave()
    join(name, clean=False, properties=lasting).expect_silence()


def test_every_form_of_acknowledgement_is_understood(join: Dial, topic: str) -> None:
    """3.4.2.1: with and without a reason code, with and without properties."""
    forms = [(None, None), (0, None), (0, []), (0x10, [(Prop.USER_PROPERTY, ("k", "v"))])]
    peer = join(properties=[(Prop.RECEIVE_MAXIMUM, 1)])
    peer.subscribe(topic, qos=2)
    publisher = join()
    for number, (code, properties) in enumerate(forms):
        publisher.publish(topic, b"%d" % number, 1)
        message = peer.message(ack=False)
        peer.send(wire.ack(Kind.PUBACK, message.packet_id, code, properties))
        publisher.publish(topic, b"%d" % number, 2)
        message = peer.message(ack=False)
        peer.send(wire.ack(Kind.PUBREC, message.packet_id, code, properties))
        assert peer.expect(Kind.PUBREL).packet_id == message.packet_id
        done = None if code is None else 0
        peer.send(wire.ack(Kind.PUBCOMP, message.packet_id, done, properties))
    peer.expect_silence()


def test_messages_of_one_client_keep_their_order(join: Dial, version: int, topic: str, qos: int) -> None:
    """MQTT-4.6.0-5 (5), 4.6.0-6 (3.1.1): per topic and QoS; acknowledgements come in order too."""
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(topic, qos=qos)
    payloads = [b"%d" % number for number in range(10)]
    for number, payload in enumerate(payloads):
        publisher.send(wire.publish(topic, payload, qos, number + 1 if qos else 0, version=version))
    for number in range(10 if qos else 0):
        kind = Kind.PUBACK if qos == 1 else Kind.PUBREC
        assert publisher.expect(kind).packet_id == number + 1
    publisher.send(*[wire.ack(Kind.PUBREL, number + 1) for number in range(10) if qos == 2])
    assert peer.payloads(10) == payloads


def test_pubrels_follow_the_order_of_pubrecs(join: Dial, version: int, topic: str) -> None:
    """MQTT-4.6.0-4: as a sender, the broker answers PUBREC in the order it came."""
    peer = join(version=version)
    peer.subscribe(topic, qos=2)
    join(version=version).publish_all(topic, [b"1", b"2", b"3"], 2)
    ids = [one.packet_id for one in peer.messages(3, ack=False)]
    peer.send(*[wire.ack(Kind.PUBREC, packet_id) for packet_id in ids])
    assert [peer.expect(Kind.PUBREL).packet_id for _ in ids] == ids


def test_a_late_acknowledgement_holds_up_no_other_client(join: Dial, version: int, topic: str) -> None:
    slow, quick = join(version=version), join(version=version)
    slow.subscribe(topic, qos=1)
    quick.subscribe(topic, qos=1)
    payloads = [b"%d" % number for number in range(100)]
    join(version=version).publish_all(topic, payloads, 1)
    assert quick.payloads(100) == payloads


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 2_097_152])
def test_payloads_of_every_length_arrive_whole(join: Dial, version: int, topic: str, size: int) -> None:
    payload = (bytes(range(251)) * (size // 251 + 1))[:size]
    peer = join(version=version)
    peer.subscribe(topic, qos=1)
    join(version=version).publish(topic, payload, 1)
    assert peer.message().payload == payload


@pytest.mark.parametrize("qos", [1, 2])
def test_packet_identifier_zero_is_refused(join: Dial, version: int, topic: str, qos: int) -> None:
    peer = join(version=version)
    peer.send(wire.publish(topic, b"x", qos, 0, version=version))
    peer.expect_refusal(0x81, 0x82)


def test_puback_says_when_nobody_subscribes_or_success(join: Dial, topic: str) -> None:
    """3.4.2.1: 0x10 is allowed where there is no subscriber, never where there is one."""
    peer = join()
    assert peer.publish(topic, b"x", 1) in (0, 0x10)
    peer.subscribe(topic)
    assert peer.publish(topic, b"x", 1) == 0
    assert peer.publish(topic, b"x", 2) == 0
