"""A subscriber that asks for it learns which client published each message, however the message comes to it.

docs/reference/publishers.md. With one shard, and with two that learn the names of each other's publishers."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Ended, Peer
from tests.conformance.wire import Kind, Packet, Prop, Will
from tests.faults.kill.test_shards import shards_of

ASK = [(Prop.USER_PROPERTY, ("rumq-publisher", "yes"))]
FROM_EARLIEST = [(Prop.USER_PROPERTY, ("rumq-from", "earliest"))]
LASTING = [(Prop.SESSION_EXPIRY, 3600)]
DEVICES = [f"device-{number}" for number in range(6)]  # of several shards, where there are several
EVERYONE = {f"a/{name}": [name] for name in DEVICES}
NOBODY: dict[str, list[str]] = {topic: [] for topic in EVERYONE}


@pytest.fixture(params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rumqd]:
    broker = Rumqd(tmp_path / "data", "--set", f"shards.count={request.param}")
    broker.start()
    yield broker
    broker.end()


EXPLAIN = [(Prop.REQUEST_PROBLEM_INFO, 1)]


def join(broker: Rumqd, client_id: str, version: int = 5, **fields: object) -> Peer:
    peer = Peer(broker.address, version)
    assert peer.connect(client_id, **fields).code == 0
    return peer


def publish(broker: Rumqd, *devices: str, retain: bool = False) -> None:
    """Each device publishes one message to a topic that has its name."""
    for name in devices or DEVICES:
        with join(broker, name) as device:
            assert device.publish(f"a/{name}", b"x", 1, retain=retain) in (0, 0x10)


def names(packet: Packet, which: str = "rumq-publisher") -> list[str]:
    pairs = [value for kind, value in packet.properties if kind == Prop.USER_PROPERTY]
    return [value for name, value in pairs if name == which]  # type: ignore[misc]


def told(peer: Peer, count: int = len(DEVICES)) -> dict[str, list[str]]:
    """Of `count` messages: topic -> who published it."""
    return {packet.topic: names(packet) for packet in peer.messages(count)}


def test_a_live_message_names_its_publisher_to_those_who_ask_alone(broker: Rumqd) -> None:
    with join(broker, "asks") as asks, join(broker, "other") as other, join(broker, "old", 4) as old:
        assert asks.subscribe("a/#", qos=1, properties=ASK) == [1]
        for peer in (other, old):
            peer.subscribe("a/#", qos=1)
        publish(broker)
        assert told(asks) == EVERYONE
        assert told(other) == told(old) == NOBODY


def test_clients_that_came_before_and_after_the_question_are_named(broker: Rumqd) -> None:
    publish(broker, *DEVICES[:3])
    with join(broker, "asks") as asks:
        asks.subscribe("a/#", qos=1, properties=ASK)
        publish(broker)
        assert told(asks) == EVERYONE


def test_a_replay_names_publishers_beside_its_offsets(broker: Rumqd) -> None:
    publish(broker)
    with join(broker, "asks") as asks:
        asks.subscribe("a/#", qos=1, properties=[*FROM_EARLIEST, *ASK])
        found = asks.messages(len(DEVICES))
        assert {packet.topic: names(packet) for packet in found} == EVERYONE
        assert all(names(packet, "rumq-offset") == ["0"] for packet in found)


def test_retained_messages_shared_subscriptions_and_aliases(broker: Rumqd) -> None:
    publish(broker, retain=True)
    with (
        join(broker, "late", properties=[(Prop.TOPIC_ALIAS_MAXIMUM, 2)]) as late,
        join(broker, "m") as member,
    ):
        late.subscribe("a/#", qos=1, properties=ASK)
        assert told(late) == EVERYONE
        member.subscribe("$share/g/a/#", qos=1, properties=ASK)
        publish(broker, DEVICES[0])
        publish(broker)
        assert [names(packet) for packet in late.messages(7)] == [[name] for name in (DEVICES[0], *DEVICES)]
        assert sorted(names(packet)[0] for packet in member.messages(7)) == sorted([DEVICES[0], *DEVICES])


def test_a_will_names_whose_it_was(broker: Rumqd) -> None:
    with join(broker, "asks") as asks, join(broker, "willing", will=Will("gone", b"away", 1)) as willing:
        asks.subscribe("gone", qos=1, properties=ASK)
        willing.reset()
        assert told(asks, 1) == {"gone": ["willing"]}


def test_a_forged_name_stands_before_the_one_that_is_true(broker: Rumqd) -> None:
    with join(broker, "asks") as asks, join(broker, "forger") as forger:
        asks.subscribe("a", qos=1, properties=ASK)
        forger.publish("a", b"x", 1, properties=[(Prop.USER_PROPERTY, ("rumq-publisher", "victim"))])
        assert told(asks, 1) == {"a": ["victim", "forger"]}


def test_the_broker_itself_has_no_name(broker: Rumqd) -> None:
    with join(broker, "asks") as asks:
        asks.subscribe("$SYS/broker/version", properties=ASK)
        assert told(asks, 1) == {"$SYS/broker/version": []}


def test_a_subscription_that_does_not_ask_any_more_is_not_told(broker: Rumqd) -> None:
    with join(broker, "asks") as asks:
        asks.subscribe("a/#", qos=1, properties=ASK)
        asks.subscribe("a/#", qos=1)
        publish(broker)
        assert told(asks) == NOBODY


def test_a_session_that_was_away_is_told_after_kill_9_too(broker: Rumqd) -> None:
    with join(broker, "asks", clean=False, properties=LASTING) as asks:
        asks.subscribe("a/#", qos=1, properties=ASK)
        publish(broker, *DEVICES[:2])
        assert told_unacknowledged(asks, 2) == {f"a/{name}": [name] for name in DEVICES[:2]}
    publish(broker, *DEVICES[2:4])
    broker.kill()
    broker.start()
    publish(broker, *DEVICES[4:])
    with join(broker, "asks", clean=False, properties=LASTING) as asks:
        assert asks.connack.session_present
        assert told(asks) == EVERYONE  # the first two once more: they were not acknowledged
        publish(broker, "new")
        assert told(asks, 1) == {"a/new": ["new"]}


def told_unacknowledged(peer: Peer, count: int) -> dict[str, list[str]]:
    return {packet.topic: names(packet) for packet in peer.messages(count, ack=False)}


@pytest.mark.parametrize("broker", [2], indirect=True)
def test_names_come_again_from_a_shard_that_died(broker: Rumqd) -> None:
    watchers = [join(broker, f"asks-{number}") for number in range(6)]
    for watcher in watchers:
        watcher.subscribe("a/#", qos=1, properties=ASK)
    publish(broker)
    assert [told(watcher) for watcher in watchers] == [EVERYONE] * len(watchers)
    os.kill(shards_of(broker.process.pid)[0], signal.SIGKILL)
    broker.event("shard.ready")
    later = [f"later-{number}" for number in range(6)]
    publish(broker, *later)
    alive = 0
    for watcher in watchers:
        try:
            assert told(watcher, len(later)) == {f"a/{name}": [name] for name in later}
            alive += 1
        except (Ended, ConnectionError):
            pass
        watcher.close()
    assert 0 < alive < len(watchers)


@pytest.mark.parametrize("value", ["no", "", "Yes", "y" * 60_000], ids=["no", "empty", "Yes", "long"])
def test_another_value_is_refused_with_what_is_allowed(broker: Rumqd, value: str) -> None:
    with join(broker, "asks", properties=EXPLAIN) as asks:
        asks.send(wire.subscribe(1, [("a", 1)], [(Prop.USER_PROPERTY, ("rumq-publisher", value))]))
        answer = asks.expect(Kind.SUBACK)
        assert answer.codes == [0x8F]
        (why,) = (text for kind, text in answer.properties if kind == Prop.REASON_STRING)
        assert "allowed: yes" in str(why) and len(str(why)) < 300


def test_a_broker_that_keeps_client_ids_to_itself_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    broker = Rumqd(data)
    broker.start()
    with join(broker, "lasts", clean=False, properties=LASTING) as lasts:
        lasts.subscribe("a/#", qos=1, properties=ASK)
    broker.stop()
    broker = Rumqd(data, "--set", "mqtt.publisher_available=false")
    broker.start()
    with join(broker, "asks", properties=EXPLAIN) as asks:
        asks.send(wire.subscribe(1, [("a", 1)], ASK))
        answer = asks.expect(Kind.SUBACK)
        assert answer.codes == [0x83]
        assert "publisher_available" in str(dict(answer.properties)[Prop.REASON_STRING])
    publish(broker)
    with join(broker, "lasts", clean=False, properties=LASTING) as lasts:
        assert told(lasts) == NOBODY
    broker.end()
