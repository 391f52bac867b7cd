"""Sessions: begun, resumed, ended. MQTT 5.0, 3.1.2.4, 3.1.2.11.2 and 4.1; MQTT 3.1.1, 3.1.2.4."""

from typing import Any

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Kind, Prop


def lasting(version: int, clean: bool = False, seconds: int = 300) -> dict[str, Any]:
    """CONNECT fields of a session that outlives its connection."""
    if version < 5:
        return {"clean": False}
    return {"clean": clean, "properties": [(Prop.SESSION_EXPIRY, seconds)]}


def test_a_session_that_is_not_there_is_begun(join: Dial, version: int, name: str) -> None:
    assert not join(name, version, **lasting(version)).connack.session_present


def test_a_lasting_session_is_present_again(join: Dial, version: int, name: str) -> None:
    join(name, version, **lasting(version)).leave()
    assert join(name, version, **lasting(version)).connack.session_present


def test_a_lasting_session_survives_a_lost_network(join: Dial, version: int, name: str) -> None:
    join(name, version, **lasting(version)).close()
    assert join(name, version, **lasting(version)).connack.session_present


def test_clean_start_discards_the_session(join: Dial, version: int, name: str, topic: str) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=1)
    peer.leave()
    fresh = join(name, version, clean=True)
    assert not fresh.connack.session_present
    fresh.publish(topic, b"nobody hears", 1)
    fresh.expect_silence()
    fresh.leave()
    assert not join(name, version, **lasting(version)).connack.session_present


def test_a_clean_session_of_311_ends_with_its_connection(join: Dial, name: str) -> None:
    join(name, 4, clean=True).leave()
    assert not join(name, 4, clean=False).connack.session_present


@pytest.mark.parametrize("properties", [[], [(Prop.SESSION_EXPIRY, 0)]], ids=["absent", "zero"])
def test_without_session_expiry_the_session_ends_with_its_connection(
    join: Dial, name: str, properties: list[tuple[int, int]]
) -> None:
    join(name, clean=False, properties=properties).leave()
    assert not join(name, clean=False).connack.session_present


def test_a_session_that_never_expires_is_kept(join: Dial, name: str) -> None:
    join(name, **lasting(5, seconds=0xFFFF_FFFF)).leave()
    assert join(name, clean=False).connack.session_present


def test_a_session_begun_by_clean_start_lasts_by_its_expiry(join: Dial, name: str) -> None:
    join(name, **lasting(5, clean=True)).leave()
    assert join(name, clean=False).connack.session_present


def test_disconnect_may_end_a_lasting_session(join: Dial, name: str) -> None:
    """3.14.2.2.2: DISCONNECT changes the Session Expiry Interval, here to 0."""
    join(name, **lasting(5)).leave(0, [(Prop.SESSION_EXPIRY, 0)])
    assert not join(name, clean=False).connack.session_present


def test_disconnect_may_prolong_a_lasting_session(join: Dial, name: str) -> None:
    join(name, **lasting(5, seconds=1)).leave(0, [(Prop.SESSION_EXPIRY, 600)])
    assert join(name, clean=False).connack.session_present


def test_disconnect_must_not_prolong_a_session_that_had_no_expiry(join: Dial, name: str) -> None:
    """3.14.2.2.2: from 0 to another value is a Protocol Error, and the session ends as it was to."""
    peer = join(name)
    peer.send(wire.disconnect(0, [(Prop.SESSION_EXPIRY, 60)]))
    peer.expect_refusal(0x82)
    assert not join(name, clean=False).connack.session_present


def test_resuming_with_another_expiry_replaces_it(join: Dial, name: str) -> None:
    join(name, **lasting(5)).leave()
    join(name, clean=False, properties=[(Prop.SESSION_EXPIRY, 0)]).leave()
    assert not join(name, clean=False).connack.session_present


def test_subscriptions_are_part_of_the_session(join: Dial, version: int, name: str, topic: str) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=1)
    peer.leave()
    peer = join(name, version, **lasting(version))
    peer.publish(topic, b"still subscribed", 1)
    assert peer.message().payload == b"still subscribed"


def test_subscription_options_and_identifiers_are_part_of_the_session(join: Dial, name: str, topic: str) -> None:
    peer = join(name, **lasting(5))
    peer.subscribe((topic, 0x01 | 0x04 | 0x08), properties=[(Prop.SUBSCRIPTION_ID, 77)])
    peer.leave()
    peer = join(name, **lasting(5))
    peer.publish(topic, b"own", 1)
    join().publish(topic, b"foreign", 1, retain=True)
    message = peer.message()
    assert (message.payload, message.retain) == (b"foreign", True)
    assert message.all(Prop.SUBSCRIPTION_ID) == [77]


@pytest.mark.parametrize("sent_qos", [1, 2])
def test_messages_wait_for_an_absent_session_in_order(
    join: Dial, version: int, name: str, topic: str, sent_qos: int
) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=2)
    peer.leave()
    payloads = [b"%d" % number for number in range(20)]
    join(version=version).publish_all(topic, payloads, sent_qos)
    peer = join(name, version, **lasting(version))
    found = peer.messages(20)
    assert [one.payload for one in found] == payloads
    assert {(one.qos, one.dup) for one in found} == {(sent_qos, False)}
    peer.expect_silence()


def test_messages_wait_for_a_session_whose_network_was_lost(join: Dial, version: int, name: str, topic: str) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=1)
    peer.reset()
    join(version=version).publish_all(topic, [b"1", b"2", b"3"], 1)
    assert join(name, version, **lasting(version)).payloads(3) == [b"1", b"2", b"3"]


def test_messages_wait_once_though_the_session_returns_twice(join: Dial, version: int, name: str, topic: str) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=1)
    peer.leave()
    join(version=version).publish(topic, b"once", 1)
    peer = join(name, version, **lasting(version))
    assert peer.payloads(1) == [b"once"]
    peer.expect_silence()
    peer.leave()
    join(name, version, **lasting(version)).expect_silence()


def test_nothing_waits_for_a_topic_that_was_unsubscribed(join: Dial, version: int, name: str, topic: str) -> None:
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, f"{topic}/kept", qos=1)
    peer.unsubscribe(topic)
    peer.leave()
    other = join(version=version)
    other.publish(topic, b"gone", 1)
    other.publish(f"{topic}/kept", b"kept", 1)
    assert join(name, version, **lasting(version)).payloads(1) == [b"kept"]


def test_retained_messages_outlive_every_session(join: Dial, version: int, name: str, topic: str) -> None:
    """MQTT-3.1.2.7 of 3.1.1; MQTT 5.0, 4.1: not part of the session state."""
    peer = join(name, version, clean=True)
    peer.publish(topic, b"kept", 1, retain=True)
    peer.leave()
    join(name, version, clean=True).leave()
    watcher = join(version=version)
    watcher.subscribe(topic)
    assert watcher.message().payload == b"kept"


def test_sessions_are_told_apart_by_client_identifier(join: Dial, version: int, name: str, topic: str) -> None:
    """MQTT-3.1.3-2; upper and lower case are different characters."""
    peer = join(f"{name}a", version, **lasting(version))
    peer.subscribe(topic, qos=1)
    peer.leave()
    assert not join(f"{name}A", version, **lasting(version)).connack.session_present
    assert join(f"{name}a", version, **lasting(version)).connack.session_present


def test_a_second_connection_takes_the_session_over(join: Dial, version: int, name: str, topic: str) -> None:
    """MQTT 5.0, 3.1.4-3: the first gets DISCONNECT 0x8E; 3.1.1, 3.1.4-2: it is closed."""
    first = join(name, version, **lasting(version))
    first.subscribe(topic, qos=1)
    second = join(name, version, **lasting(version))
    first.expect_refusal(0x8E)
    assert second.connack.session_present
    second.publish(topic, b"to the second", 1)
    assert second.message().payload == b"to the second"


def test_a_second_connection_with_clean_start_ends_the_first(join: Dial, version: int, name: str, topic: str) -> None:
    first = join(name, version, **lasting(version))
    first.subscribe(topic, qos=1)
    second = join(name, version, clean=True)
    first.expect_refusal(0x8E)
    assert not second.connack.session_present
    second.publish(topic, b"nobody", 1)
    second.expect_silence()


def test_a_connection_taken_over_between_versions(join: Dial, name: str) -> None:
    first = join(name, 4, clean=False)
    second = join(name, 5, **lasting(5))
    first.expect_refusal()
    third = join(name, 4, clean=False)
    second.expect_refusal(0x8E)
    assert second.connack.session_present and third.connack.session_present


def test_a_chain_of_take_overs_leaves_one_connection(join: Dial, version: int, name: str) -> None:
    peers = [join(name, version, **lasting(version)) for _ in range(10)]
    for peer in peers[:-1]:
        peer.expect_refusal(0x8E)
    peers[-1].expect_silence()


def test_a_lasting_session_is_kept_while_connected(join: Dial, name: str, topic: str) -> None:
    """MQTT-4.1.0-1: a session without expiry is whole as long as its connection lives."""
    peer = join(name)
    peer.subscribe(topic, qos=2)
    for number in range(3):
        peer.publish(topic, b"%d" % number, 2)
        assert peer.message().payload == b"%d" % number


def test_the_broker_never_sends_a_clean_start_client_what_an_older_session_left(
    join: Dial, version: int, name: str, topic: str
) -> None:
    """MQTT-3.1.2-4 (5) and 3.1.2-6 (3.1.1): no state of the old session is reused."""
    peer = join(name, version, **lasting(version))
    peer.subscribe(topic, qos=2)
    join(version=version).publish(topic, b"unacknowledged", 2)
    peer.message(ack=False)
    peer.reset()
    fresh = join(name, version, clean=True)
    fresh.expect_silence()
    fresh.send(wire.ack(Kind.PUBREL, 1))
    fresh.pending()
