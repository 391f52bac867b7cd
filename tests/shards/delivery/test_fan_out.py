"""Fan-out: readers of a group get the same bytes, each as much as it can take, and nobody waits for another."""

import select
from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import (
    LASTING,
    counted,
    drain,
    messages,
    payloads,
    permit,
    ruled,
    subscribed,
)


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


class Written(Client):
    """objects: what was written to it, as objects"""

    objects: list[object]

    def write(self, data: Any, owner: object = None) -> None:
        self.__dict__.setdefault("objects", []).append(data)
        super().write(data, owner)


def test_readers_of_the_same_get_the_same_bytes(shard: Shard) -> None:
    """One encoding, and no copy of it, however many they are."""
    readers = [Written(shard, f"r{n}", 5) for n in range(3)]
    for reader in readers:
        reader.say(wire.subscribe(1, [("t", 0)]))
        reader.objects.clear()
    Client(shard, "p", 5).say(wire.publish("t", b"x"))
    first, *others = [reader.objects for reader in readers]
    assert len(first) == 1 and all(other[0] is first[0] for other in others)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_each_gets_it_in_its_version_and_at_the_lower_qos(shard: Shard, version: int) -> None:
    readers = [subscribed(shard, f"r{qos}", "t", options=qos, version=version) for qos in range(3)]
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1, properties=[(Prop.CONTENT_TYPE, "text")]))
    for qos, reader in enumerate(readers):
        (message,) = messages(reader)
        assert (message.payload, message.qos) == (b"x", min(qos, 1))
        assert message.get(Prop.CONTENT_TYPE) == ("text" if version == 5 else None)


def test_a_publisher_does_not_get_its_own_with_no_local(shard: Shard) -> None:
    """MQTT-3.8.3-3"""
    publisher = subscribed(shard, "p", "t", options=4)
    publisher.say(wire.publish("t", b"own"))
    Client(shard, "q", 5).say(wire.publish("t", b"another's"))
    assert payloads(publisher) == [b"another's"]


def test_nor_what_it_published_before_it_had_this_session(shard: Shard) -> None:
    """The statement speaks of the client id."""
    for name in ("p", "q"):
        client = Client(shard, name, 5)
        client.say(wire.publish("t", name.encode(), 1, 1), wire.disconnect())
    again = Client(shard, "p", 5)
    again.say(wire.subscribe(1, [("$log/earliest/t", 4)]))
    shard.settle()
    assert payloads(again) == [b"q"]


def test_a_topic_alias_is_told_once_and_stands_for_the_topic_then(shard: Shard) -> None:
    """MQTT 5.0, 3.3.2.3.4"""
    reader = subscribed(shard, "r", "#", properties=[(Prop.TOPIC_ALIAS_MAXIMUM, 2)])
    publisher = Client(shard, "p", 5)
    publisher.say(*[wire.publish(f"t/{n % 2}", b"%d" % n) for n in range(6)])
    first, second, *others = messages(reader)
    names = {first.get(Prop.TOPIC_ALIAS): first.topic, second.get(Prop.TOPIC_ALIAS): second.topic}
    assert set(names) == {1, 2} and set(names.values()) == {"t/0", "t/1"}
    assert [each.topic for each in others] == [""] * 4
    assert [names[each.get(Prop.TOPIC_ALIAS)] for each in others] == ["t/0", "t/1"] * 2


def test_with_aliases_no_more_is_built_than_the_client_takes(shard: Shard) -> None:
    """An alias that was told and has not arrived would be wrong."""
    limits = [(Prop.TOPIC_ALIAS_MAXIMUM, 10), (Prop.RECEIVE_MAXIMUM, 2)]
    reader = subscribed(shard, "r", "#", options=1, properties=limits)
    Client(shard, "p", 5).say(*[wire.publish("t", b"%d" % n, 1, 1 + n) for n in range(5)])
    names, got = {}, []
    while some := messages(reader):
        assert len(some) <= 2
        for each in some:
            if each.topic:
                names[each.get(Prop.TOPIC_ALIAS)] = each.topic
            got.append((names[each.get(Prop.TOPIC_ALIAS)], each.payload))
            reader.say(wire.ack(Kind.PUBACK, each.packet_id))
    assert got == [("t", b"%d" % n) for n in range(5)]


def test_a_message_larger_than_a_client_takes_is_counted_and_the_others_come(shard: Shard) -> None:
    """MQTT-3.1.2-24"""
    small = subscribed(shard, "small", "t", properties=[(Prop.MAXIMUM_PACKET_SIZE, 100)])
    large = subscribed(shard, "large", "t")
    Client(shard, "p", 5).say(wire.publish("t", bytes(200)), wire.publish("t", b"x"))
    assert payloads(small) == [b"x"] and payloads(large) == [bytes(200), b"x"]
    assert counted(shard) == {("over_limit", "small", "t"): 1}


def test_a_client_that_takes_nothing_delays_nobody_and_gets_all_in_order_later(shard: Shard) -> None:
    slow, other = subscribed(shard, "slow", "t"), subscribed(shard, "other", "t")
    publisher = Client(shard, "p", 5)
    slow.room = 0
    for number in range(5):
        publisher.say(wire.publish("t", b"%d" % number))
    assert payloads(slow) == [] and slow.refused
    assert payloads(other) == [b"%d" % number for number in range(5)]
    drain(slow)
    publisher.say(wire.publish("t", b"5"))
    assert payloads(slow) == [b"%d" % number for number in range(6)] and counted(shard) == {}


def test_what_may_not_be_received_is_withheld_and_counted_where_the_reader_comes_to_it(shard: Shard) -> None:
    policy = ruled(shard, "#")
    reader = subscribed(shard, "r", "#")
    permit(policy, "open/#")
    shard.parts.clients.broker.permit_again()
    permit(policy, "#")
    publisher = Client(shard, "p", 5)
    publisher.say(wire.publish("closed/1", b"a"))
    publisher.say(wire.publish("open/1", b"b"), wire.publish("closed/1", b"c"))
    assert payloads(reader) == [b"b"]
    assert counted(shard) == {("no_permission", "r", "closed/1"): 2}


def test_a_fault_at_one_client_ends_its_connection_and_the_others_get_theirs(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = [subscribed(shard, f"r{n}", "t") for n in range(3)]

    def fails(data: object, owner: object = None) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(readers[1], "write", fails)
    Client(shard, "p", 5).say(wire.publish("t", b"x"))
    assert [payloads(reader) for reader in readers] == [[b"x"], [], [b"x"]]
    assert [event["client_id"] for event in shard.told("client.crashed")] == ["r1"]


def test_a_client_that_leaves_in_the_turn_of_a_message_has_it_when_it_is_back(shard: Shard) -> None:
    reader = subscribed(shard, "r", "t", options=1, **LASTING)
    publisher = Client(shard, "p", 5)
    packet = wire.publish("t", b"x", 1, 1)
    publisher.link.receive(packet, 0, len(packet))
    reader.link.lost("the network")
    shard.settle()
    assert payloads(Client(shard, "r", 5, **LASTING)) == [b"x"]


def test_a_reader_far_behind_gets_a_bounded_piece_a_turn_and_goes_on_by_itself(shard: Shard) -> None:
    publisher = Client(shard, "p", 5)
    for _ in range(40):
        publisher.say(*[wire.publish("t", bytes(10_000), 1, 1 + n) for n in range(20)])
    reader = Client(shard, "r", 5)
    packet = wire.subscribe(1, [("$log/earliest/t", 0)])
    reader.link.receive(packet, 0, len(packet))
    pieces = []
    turn, worker = shard.parts.turn, shard.parts.writing.workers.reader
    while sum(pieces) < 800:
        turn.begin_turn()
        turn.end_turn()
        while worker.pending:
            select.select([worker.fd], [], [])
            worker.finish()
        shard.parts.writing.workers.writer.finish()
        pieces.append(len(messages(reader)))
    assert max(pieces) <= 400


def test_retained_messages_come_before_live_ones(shard: Shard) -> None:
    publisher = Client(shard, "p", 5)
    publisher.say(*[wire.publish(f"t/{n}", b"retained", retain=True) for n in range(5)])
    reader = Client(shard, "r", 5)
    packet, later = wire.subscribe(1, [("t/#", 0)]), wire.publish("t/0", b"live")
    reader.link.receive(packet, 0, len(packet))
    publisher.link.receive(later, 0, len(later))
    shard.settle()
    got = messages(reader)
    assert [(each.payload, each.retain) for each in got[:5]] == [(b"retained", True)] * 5
    assert [(each.payload, each.retain) for each in got[5:]] == [(b"live", False)]
