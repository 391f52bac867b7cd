"""SUBSCRIBE, SUBACK and what a subscription delivers. MQTT 5.0, 3.3.4, 3.8, 3.9; 3.1.1, 3.3.5, 3.8, 3.9."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Kind, Packet


def test_every_subscribe_is_answered_with_its_packet_identifier(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    for packet_id in (1, 77, 65_535, 256):
        peer.send(wire.subscribe(packet_id, [(topic, 0)], version=version))
        assert peer.expect(Kind.SUBACK).packet_id == packet_id


def test_a_suback_has_a_code_for_each_filter_in_their_order(join: Dial, version: int, topic: str) -> None:
    filters = [(f"{topic}/{number}", qos) for number, qos in enumerate((2, 0, 1, 1, 0, 2))]
    assert join(version=version).subscribe(*filters) == [2, 0, 1, 1, 0, 2]


@pytest.mark.parametrize("sent_qos", [0, 1, 2])
def test_a_message_comes_at_the_lesser_of_its_qos_and_the_granted(
    join: Dial, version: int, topic: str, qos: int, sent_qos: int
) -> None:
    peer = join(version=version)
    assert peer.subscribe(topic, qos=qos) == [qos]
    join(version=version).publish(topic, b"x", sent_qos)
    assert peer.message().qos == min(qos, sent_qos)
    peer.expect_silence()


def test_several_filters_in_one_subscribe_all_deliver(join: Dial, version: int, topic: str) -> None:
    """MQTT-3.8.4-5 (5) and 3.8.4-4 (3.1.1): as if they had come one by one."""
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(*[f"{topic}/{number}" for number in range(50)])
    for number in range(50):
        publisher.publish(f"{topic}/{number}", b"%d" % number, 1)
    assert sorted(peer.payloads(50)) == sorted(b"%d" % number for number in range(50))


def test_a_filter_twice_in_one_subscribe_is_one_subscription(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    assert peer.subscribe((topic, 0), (topic, 1)) == [0, 1]
    join(version=version).publish(topic, b"x", 1)
    assert peer.message().qos == 1
    peer.expect_silence()


def test_the_same_filter_again_replaces_the_subscription(join: Dial, version: int, topic: str) -> None:
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(topic, qos=2)
    peer.subscribe(topic, qos=0)
    publisher.publish(topic, b"x", 2)
    assert peer.message().qos == 0
    peer.subscribe(topic, qos=1)
    publisher.publish(topic, b"x", 2)
    assert peer.message().qos == 1
    peer.expect_silence()


def test_replacing_a_subscription_loses_no_message(join: Dial, version: int, topic: str) -> None:
    """MQTT-3.8.4-4 (5), 3.8.4-3 (3.1.1): the flow is not interrupted."""
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(topic, qos=1)
    for number in range(30):
        publisher.send(wire.publish(topic, b"%d" % number, version=version))
        packet_id = number + 100
        peer.send(wire.subscribe(packet_id, [(topic, 1)], version=version))
    publisher.publish(topic, b"end", 1)
    found: list[Packet] = []
    while not found or found[-1].payload != b"end":
        packet = peer.receive()
        found += [packet] if packet.kind == Kind.PUBLISH else []
    assert [one.payload for one in found[:-1]] == [b"%d" % number for number in range(30)]


def test_overlapping_subscriptions_deliver_at_the_greatest_qos(join: Dial, version: int, topic: str) -> None:
    """MQTT-3.3.4-2 (5), 3.3.5-1 (3.1.1): one copy at the greatest QoS; more copies may come at their own."""
    peer = join(version=version)
    peer.subscribe((f"{topic}/#", 2), (f"{topic}/+", 1), (f"{topic}/a", 0))
    publisher = join(version=version)
    publisher.publish(f"{topic}/a", b"x", 2)
    publisher.publish(f"{topic}/b/end", b"end", 1)
    found: list[Packet] = []
    while not found or found[-1].payload != b"end":
        found.append(peer.message())
    assert 1 <= len(found) - 1 <= 3
    assert max(one.qos for one in found[:-1]) == 2


def test_a_message_reaches_every_subscriber(join: Dial, version: int, topic: str, qos: int) -> None:
    """MQTT-4.5.0-1."""
    peers = [join(version=version) for _ in range(5)]
    for peer in peers:
        peer.subscribe(topic, qos=qos)
    join(version=version).publish_all(topic, [b"1", b"2"], qos)
    assert [peer.payloads(2) for peer in peers] == [[b"1", b"2"]] * 5


def test_a_subscriber_gets_only_what_matches(join: Dial, version: int, topic: str) -> None:
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(f"{topic}/a", qos=1)
    for name in ("b", "a/b", "", "A"):
        publisher.publish(f"{topic}/{name}", b"foreign", 1)
    publisher.publish(topic, b"foreign", 1)
    publisher.publish(f"{topic}/a", b"own", 1)
    assert peer.message().topic == f"{topic}/a"
    peer.expect_silence()


def test_an_idle_publisher_gets_its_own_message(join: Dial, version: int, topic: str, qos: int) -> None:
    peer = join(version=version)
    peer.subscribe(topic, qos=qos)
    peer.publish(topic, b"own", qos)
    assert peer.message().payload == b"own"


def test_a_subscribe_without_filters_is_refused(join: Dial, version: int) -> None:
    peer = join(version=version)
    peer.send(wire.subscribe(1, [], version=version))
    peer.expect_refusal(0x81, 0x82)


@pytest.mark.parametrize("options", [0x03, 0x04 | 0x03, 0x40, 0x80, 0xC0])
def test_reserved_bits_and_qos_3_are_refused(join: Dial, version: int, topic: str, options: int) -> None:
    peer = join(version=version)
    peer.send(wire.subscribe(1, [(topic, options)], version=version))
    peer.expect_refusal(0x81, 0x82)


@pytest.mark.parametrize("options", [0x04, 0x08, 0x10, 0x20, 0x30])
def test_311_has_no_subscription_options_beside_qos(join: Dial, topic: str, options: int) -> None:
    """MQTT-3.8.3-4 of 3.1.1."""
    peer = join(version=4)
    peer.send(wire.subscribe(1, [(topic, options)], version=4))
    peer.expect_refusal()


def test_retain_handling_3_is_refused(join: Dial, topic: str) -> None:
    peer = join()
    peer.send(wire.subscribe(1, [(topic, 0x30)]))
    peer.expect_refusal(0x81, 0x82)


def test_a_filter_without_its_options_is_malformed(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    whole = wire.subscribe(1, [(topic, 0)], version=version)
    peer.send(wire.frame(0x82, whole[2:-1]))
    peer.expect_refusal(0x81, 0x82)


@pytest.mark.parametrize("bad", [b"\xff", b"a\xed\xbf\xbf", b"a\x00b"])
def test_a_filter_must_be_utf8(join: Dial, version: int, bad: bytes) -> None:
    peer = join(version=version)
    peer.send(wire.subscribe(1, [(bad, 0)], version=version))
    peer.expect_refusal(0x81, 0x82, 0x8F)


def test_packet_identifier_zero_is_refused(join: Dial, version: int, topic: str) -> None:
    """MQTT-2.2.1-3 (5), 2.3.1-1 (3.1.1)."""
    peer = join(version=version)
    peer.send(wire.subscribe(0, [(topic, 0)], version=version))
    peer.expect_refusal(0x81, 0x82)


BAD_FILTERS = ["", "a#", "#/a", "a/#/b", "a+", "+a", "a/b+/c", "a/#b", "##", "++", "a/+#"]


@pytest.mark.parametrize("bad", BAD_FILTERS)
def test_a_filter_that_breaks_the_rules_is_refused(join: Dial, version: int, bad: str) -> None:
    """4.7.1: by SUBACK 0x80 (3.1.1) or 0x8F (5), or by ending the connection."""
    peer = join(version=version)
    peer.send(wire.subscribe(1, [(bad, 0)], version=version))
    answer = peer.maybe_receive()
    if version < 5:
        assert answer is None or answer.codes == [0x80]
    else:
        assert answer is not None and answer.kind in (Kind.SUBACK, Kind.DISCONNECT)
        assert (answer.codes or [answer.code])[0] in (0x8F, 0x81, 0x82)


def test_no_local_keeps_a_client_s_own_messages_from_it(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe((topic, 0x04 | 1))
    peer.publish(topic, b"own", 1)
    join().publish(topic, b"foreign", 1)
    assert peer.message().payload == b"foreign"
    peer.expect_silence()


def test_no_local_is_each_subscription_s_own(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe((f"{topic}/+", 0x04), (f"{topic}/echo", 0))
    peer.publish(f"{topic}/quiet", b"own", 1)
    peer.publish(f"{topic}/echo", b"own", 1)
    assert peer.message().topic == f"{topic}/echo"
    peer.expect_silence()


def test_no_local_goes_by_client_identifier_not_by_connection(join: Dial, name: str, topic: str) -> None:
    lasting = [(wire.Prop.SESSION_EXPIRY, 60)]
    peer = join(name, properties=lasting)
    peer.subscribe((topic, 0x04 | 1))
    peer.publish(topic, b"own", 1)
    peer.leave()
    again = join(name, clean=False, properties=lasting)
    again.publish(topic, b"own again", 1)
    again.expect_silence()


def test_no_local_on_a_shared_subscription_is_a_protocol_error(join: Dial, topic: str) -> None:
    peer = join()
    peer.send(wire.subscribe(1, [(f"$share/g/{topic}", 0x04)]))
    peer.expect_refusal(0x82)


def test_many_subscriptions_of_one_client_all_hold(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    for start in range(0, 1000, 200):
        peer.subscribe(*[f"{topic}/{number}" for number in range(start, start + 200)])
    publisher = join(version=version)
    for number in (0, 199, 500, 999):
        publisher.publish(f"{topic}/{number}", b"%d" % number, 1)
    assert sorted(peer.payloads(4)) == [b"0", b"199", b"500", b"999"]
