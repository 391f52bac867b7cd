"""Subscription Identifiers. MQTT 5.0, 3.3.4 and 3.8.2.1.2."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.peer import Peer
from tests.conformance.wire import Prop


def identifier(number: int) -> list[tuple[int, int]]:
    return [(Prop.SUBSCRIPTION_ID, number)]


@pytest.mark.parametrize("number", [1, 127, 128, 16_384, 2_097_152, 268_435_455])
def test_a_message_carries_the_identifier_of_its_subscription(join: Dial, topic: str, number: int) -> None:
    """MQTT-3.3.4-3."""
    peer = join()
    assert peer.subscribe(topic, properties=identifier(number)) == [0]
    join().publish(topic, b"x")
    assert peer.message().all(Prop.SUBSCRIPTION_ID) == [number]


def test_without_an_identifier_none_is_carried(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe(topic)
    join().publish(topic, b"x")
    assert peer.message().all(Prop.SUBSCRIPTION_ID) == []


def test_one_identifier_may_serve_several_subscriptions(join: Dial, topic: str) -> None:
    peer, publisher = join(), join()
    peer.subscribe(f"{topic}/a", f"{topic}/b", properties=identifier(9))
    for name in "ab":
        publisher.publish(f"{topic}/{name}", b"x", 1)
    assert [one.all(Prop.SUBSCRIPTION_ID) for one in peer.messages(2)] == [[9], [9]]


def copies(peer: Peer, topic: str, publisher: Peer) -> list[list[int]]:
    """The identifiers on each copy of one message to `topic`."""
    publisher.publish(topic, b"x", 1)
    publisher.publish(f"{topic}-end", b"end", 1)
    found = [peer.message()]
    while found[-1].payload != b"end":
        found.append(peer.message())
    return [sorted(int(str(one)) for one in message.all(Prop.SUBSCRIPTION_ID)) for message in found[:-1]]


def test_overlapping_subscriptions_show_all_their_identifiers(join: Dial, topic: str) -> None:
    """MQTT-3.3.4-4 and 3.3.4-5: together on one copy, or each on its own."""
    peer = join()
    peer.subscribe(f"{topic}/+", properties=identifier(1))
    peer.subscribe(f"{topic}/#", qos=1, properties=identifier(2))
    peer.subscribe(f"{topic}/a", properties=identifier(3))
    peer.subscribe(f"{topic}/a-end", qos=1)
    found = [one for one in copies(peer, f"{topic}/a", join()) if one]
    assert sorted(number for one in found for number in one) == [1, 2, 3]


def test_an_overlap_with_a_subscription_without_identifier(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe(topic, properties=identifier(5))
    peer.subscribe(f"{topic}/#", f"{topic}-end")
    found = copies(peer, topic, join())
    assert [one for one in found if one] == [[5]]


def test_subscribing_again_replaces_the_identifier(join: Dial, topic: str) -> None:
    peer, publisher = join(), join()
    for number, expected in ((1, [1]), (2, [2]), (0, [])):
        peer.subscribe(topic, properties=identifier(number) if number else [])
        publisher.publish(topic, b"x")
        assert peer.message().all(Prop.SUBSCRIPTION_ID) == expected


def test_a_retained_message_carries_the_identifier(join: Dial, topic: str) -> None:
    join().publish(topic, b"kept", 1, retain=True)
    peer = join()
    peer.subscribe(topic, properties=identifier(77))
    message = peer.message()
    assert message.retain and message.all(Prop.SUBSCRIPTION_ID) == [77]


def test_a_shared_subscription_carries_its_identifier(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe(f"$share/group/{topic}", properties=identifier(12))
    join().publish(topic, b"x")
    assert peer.message().all(Prop.SUBSCRIPTION_ID) == [12]


def test_the_identifier_is_each_client_s_own(join: Dial, topic: str) -> None:
    peers = [join() for _ in range(3)]
    for number, peer in enumerate(peers, 1):
        peer.subscribe(topic, properties=identifier(number))
    join().publish(topic, b"x")
    assert [peer.message().all(Prop.SUBSCRIPTION_ID) for peer in peers] == [[1], [2], [3]]


def test_a_message_that_waited_carries_the_identifier(join: Dial, name: str, topic: str) -> None:
    lasting = [(Prop.SESSION_EXPIRY, 60)]
    peer = join(name, properties=lasting)
    peer.subscribe(topic, qos=1, properties=identifier(3))
    peer.leave()
    join().publish(topic, b"x", 1)
    assert join(name, clean=False, properties=lasting).message().all(Prop.SUBSCRIPTION_ID) == [3]


def test_identifier_zero_is_a_protocol_error(join: Dial, topic: str) -> None:
    peer = join()
    peer.send(wire.subscribe(1, [(topic, 0)], identifier(0)))
    peer.expect_refusal(0x81, 0x82)


def test_two_identifiers_in_one_subscribe_are_a_protocol_error(join: Dial, topic: str) -> None:
    peer = join()
    peer.send(wire.subscribe(1, [(topic, 0)], identifier(1) * 2))
    peer.expect_refusal(0x81, 0x82)


def test_an_identifier_of_five_bytes_is_malformed(join: Dial, topic: str) -> None:
    peer = join()
    body = b"\0\1\6\x0b\x80\x80\x80\x80\1" + wire.text(topic) + b"\0"
    peer.send(wire.frame(0x82, body))
    peer.expect_refusal(0x81, 0x82)
