"""Wills take the path of an ordinary PUBLISH, with the rules as they are when they are due. MQTT 5.0, 3.1.2.5."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.shards.write_path.will_publisher import WillPublisher
from tests.commitlog.records import everything
from tests.conformance import wire
from tests.conformance.wire import Prop, Will
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import LASTING, messages, payloads, permit, session_of, subscribed


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles(), topics_max=3)
    yield made
    made.end()


def lost(shard: Shard, will: Will, client_id: str = "c", version: int = 5) -> None:
    """A client with this will is lost."""
    Client(shard, client_id, version, will=will).link.lost("the network")
    shard.settle()


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will_is_published_as_its_client_wrote_it(shard: Shard, version: int, qos: int) -> None:
    reader = subscribed(shard, "r", "gone", options=2 | 8)  # retain as published
    lost(shard, Will("gone", b"will", qos, retain=True), version=version)
    (message,) = messages(reader)
    assert (message.topic, message.payload, message.qos, message.retain) == ("gone", b"will", qos, True)
    kept = shard.parts.router.retained.get("gone")
    assert kept is not None and kept.frame.endswith(b"will")


def test_its_properties_come_with_it_and_the_delay_does_not(shard: Shard) -> None:
    """MQTT-3.1.3.2"""
    reader = subscribed(shard, "r", "gone")
    properties = [(Prop.WILL_DELAY, 0), (Prop.CONTENT_TYPE, "text"), (Prop.USER_PROPERTY, ("a", "b"))]
    lost(shard, Will("gone", b"will", properties=properties))
    (message,) = messages(reader)
    assert sorted(message.properties) == sorted(properties[1:])


def test_the_log_says_whose_it_was(shard: Shard) -> None:
    lost(shard, Will("gone", b"will", 1), client_id="pump-7")
    (seen,) = everything(shard.store.partitions[1])[0]
    assert (seen.client_id, seen.payload, seen.tag) == (b"pump-7", b"will", 0)


def test_a_client_that_is_back_with_no_local_does_not_get_its_own_will(shard: Shard) -> None:
    """MQTT-3.8.3-3"""
    will = Will("gone", b"will", properties=[(Prop.WILL_DELAY, 5)])
    client = Client(shard, "c", 5, will=will, **LASTING)
    client.say(wire.subscribe(1, [("gone", 4)]))
    other = subscribed(shard, "other", "gone")
    client.link.lost("the network")
    shard.after(6.0)
    assert payloads(other) == [b"will"]
    assert payloads(Client(shard, "c", 5, **LASTING)) == []


def test_wills_larger_than_the_buffers_of_a_turn_find_room(shard: Shard) -> None:
    """256 KiB"""
    reader = subscribed(shard, "r", "gone")
    clients = [Client(shard, f"c{n}", 5, will=Will("gone", bytes(65_000))) for n in range(6)]
    for client in clients:
        client.link.lost("the network")
    shard.settle()
    assert [len(each) for each in payloads(reader)] == [65_000] * 6


def test_many_wills_of_one_turn_are_all_published(shard: Shard) -> None:
    reader = subscribed(shard, "r", "gone", options=1)
    clients = [Client(shard, f"c{n}", 5, will=Will("gone", b"%d" % n, 1)) for n in range(20)]
    for client in clients:
        client.link.lost("the network")
    shard.settle()
    assert payloads(reader) == [b"%d" % n for n in range(20)]


@pytest.mark.parametrize(("topic", "is_published"), [("gone", True), ("other", False)])
def test_it_is_held_to_the_rules_as_they_are_when_it_is_due(shard: Shard, topic: str, is_published: bool) -> None:
    policy = ListenerPolicy()
    parts = shard.parts
    batches, topics = parts.clients.broker.publishing.batches, parts.writing.topics
    wills = WillPublisher(parts.events, [policy], shard.store, batches, topics, lambda *new: None)
    reader = subscribed(shard, "r", "gone")
    Client(shard, "c", 5, will=Will("gone", b"will"))
    session = session_of(shard, "c")
    assert session.will is not None
    permit(policy, topic)
    wills.publish_will(session, session.will, session)
    shard.settle()
    assert payloads(reader) == [b"will"] * is_published
    told = [(event["client_id"], event["action"], event["topic"]) for event in shard.told("permission.refused")]
    assert told == ([] if is_published else [("c", "will", "gone")])


def test_one_topic_more_than_there_may_be_is_counted_and_the_next_will_comes(shard: Shard) -> None:
    reader = subscribed(shard, "r", "#")
    for number in range(4):
        lost(shard, Will(f"gone/{number}", b"%d" % number))
    assert payloads(reader) == [b"0", b"1", b"2"]
    assert [event["client_id"] for event in shard.told("topic.refused")] == ["c"]
    lost(shard, Will("gone/0", b"again"))
    assert payloads(reader) == [b"again"]
