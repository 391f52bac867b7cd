"""Maximum Packet Size, both ways. MQTT 5.0, 3.1.2.11.4 and 3.2.2.3.6."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Prop


def test_a_message_too_large_for_a_client_is_skipped_as_if_it_had_been_sent(join: Dial, topic: str, qos: int) -> None:
    """MQTT-3.1.2-24 and 3.1.2-25: others get it, the one goes on with the next message."""
    small, large = join(properties=[(Prop.MAXIMUM_PACKET_SIZE, 100)]), join()
    small.subscribe(topic, qos=qos)
    large.subscribe(topic, qos=qos)
    publisher = join()
    payloads = [b"1", b"x" * 200, b"2", b"y" * 200, b"3"]
    publisher.publish_all(topic, payloads, qos)
    assert large.payloads(5) == payloads
    assert small.payloads(3) == [b"1", b"2", b"3"]
    small.expect_silence()


@pytest.mark.parametrize("over", [0, 1])
def test_the_limit_counts_the_whole_packet(join: Dial, topic: str, over: int) -> None:
    """A packet of exactly Maximum Packet Size is sent, one byte more is not."""
    payload = b"x" * 50
    exact = len(wire.publish(topic, payload, 1, 1))
    peer = join(properties=[(Prop.MAXIMUM_PACKET_SIZE, exact)])
    peer.subscribe(topic, qos=1)
    publisher = join()
    publisher.publish(topic, payload + b"x" * over, 1)
    publisher.publish(topic, b"end", 1)
    expected = [b"end"] if over else [payload, b"end"]
    assert peer.payloads(len(expected)) == expected


def test_skipped_messages_take_no_quota(join: Dial, topic: str) -> None:
    """MQTT-3.1.2-25: delivery of it is complete."""
    peer = join(properties=[(Prop.MAXIMUM_PACKET_SIZE, 100), (Prop.RECEIVE_MAXIMUM, 2)])
    peer.subscribe(topic, qos=1)
    join().publish_all(topic, [b"x" * 200] * 10 + [b"end"], 1)
    assert peer.payloads(1) == [b"end"]


def test_a_retained_message_too_large_is_skipped(join: Dial, topic: str) -> None:
    publisher = join()
    publisher.publish(f"{topic}/large", b"x" * 200, 1, retain=True)
    publisher.publish(f"{topic}/small", b"x", 1, retain=True)
    peer = join(properties=[(Prop.MAXIMUM_PACKET_SIZE, 100)])
    peer.subscribe(f"{topic}/+", qos=1)
    assert peer.message().topic == f"{topic}/small"
    peer.expect_silence()


def test_properties_count_and_are_never_left_out_of_a_publish(join: Dial, topic: str) -> None:
    peer = join(properties=[(Prop.MAXIMUM_PACKET_SIZE, 100)])
    peer.subscribe(topic, qos=1)
    publisher = join()
    publisher.publish(topic, b"x", 1, properties=[(Prop.USER_PROPERTY, ("k", "v" * 100))])
    publisher.publish(topic, b"end", 1)
    assert peer.payloads(1) == [b"end"]


def test_a_message_that_waited_is_measured_by_the_new_connection(join: Dial, name: str, topic: str) -> None:
    lasting = [(Prop.SESSION_EXPIRY, 60)]
    peer = join(name, properties=lasting)
    peer.subscribe(topic, qos=1)
    peer.leave()
    join().publish_all(topic, [b"x" * 200, b"end"], 1)
    peer = join(name, clean=False, properties=[*lasting, (Prop.MAXIMUM_PACKET_SIZE, 100)])
    assert peer.payloads(1) == [b"end"]
    peer.expect_silence()


def test_every_answer_fits_the_client_s_maximum(join: Dial, topic: str) -> None:
    """MQTT-3.4.2-2, 3.5.2-2, 3.9.2-1, 3.11.2-1 and their like: what explains is left out if need be."""
    peer = join(properties=[(Prop.MAXIMUM_PACKET_SIZE, 64)])
    limit = 64
    peer.send(wire.subscribe(1, [(f"$log/nonsense/{topic}", 0), (topic, 1)]))
    answers = [peer.maybe_receive()]
    if answers[0] is not None and answers[0].codes:
        peer.send(wire.unsubscribe(2, ["never"]), wire.publish(topic, b"", 1, 3), wire.publish(topic, b"", 2, 4))
        peer.send(wire.ack(wire.Kind.PUBREL, 99), wire.frame(0x82, b"\0"))
        answers += peer.rest_until_end()
    assert len(answers) > 1 or answers == [None], "it answers, unless not even SUBACK may"
    assert all(answer.size <= limit for answer in answers if answer is not None)


def test_a_packet_larger_than_the_broker_takes_is_refused(join: Dial, topic: str) -> None:
    """3.2.2.3.6 and MQTT-3.2.2-15: DISCONNECT 0x95, told from the length alone."""
    peer = join()
    limit = peer.connack.number(Prop.MAXIMUM_PACKET_SIZE, 0)
    if not limit or limit > 2**28:
        pytest.skip("this broker takes packets of any size")
    peer.send(b"\x30" + wire.varint(min(limit, 268_435_455)) + wire.text(topic))
    peer.expect_refusal(0x95)


def test_a_311_client_is_closed_for_a_packet_too_large(join: Dial, topic: str) -> None:
    limit = join().connack.number(Prop.MAXIMUM_PACKET_SIZE, 0)
    if not limit or limit > 2**28:
        pytest.skip("this broker takes packets of any size")
    peer = join(version=4)
    peer.send(b"\x30" + wire.varint(min(limit, 268_435_455)) + wire.text(topic))
    peer.expect_refusal()


def test_a_packet_of_the_broker_s_whole_maximum_is_taken(join: Dial, topic: str) -> None:
    peer, watcher = join(), join()
    limit = min(peer.connack.number(Prop.MAXIMUM_PACKET_SIZE, 2**23), 2**24)
    watcher.subscribe(topic)
    payload = b"x" * (limit - len(wire.publish(topic, b"", 1, 1)) - 3)
    assert len(wire.publish(topic, payload, 1, 1)) == limit
    assert peer.publish(topic, payload, 1) == 0
    assert watcher.message().payload == payload
