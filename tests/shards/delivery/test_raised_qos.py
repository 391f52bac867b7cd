"""A connection that asks for exactly once is sent QoS 1 as QoS 2, in sessions that it had before and has later.

docs/decisions/0074-a-bridge-raises-qos-1.md; MQTT 5.0, 4.3.3 and 4.4."""

from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Kind, Packet, Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import LASTING, messages, permit, ruled, session_of, subscribed

ASKS = [(Prop.USER_PROPERTY, ("rumq-exactly-once", ""))]
MARK = ("rumq-qos", "1")


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles(), segment_bytes_max=1 << 16)
    yield made
    made.end()


def bridge(shard: Shard, *, asks: bool = True, version: int = 5, **more: Any) -> Client:
    """The bridge's connection to a session that stays."""
    properties = [*LASTING["properties"], *(ASKS if asks else [])] if version == 5 else []
    return Client(shard, "r", version, clean=False, properties=properties, **more)


def of(packets: list[Packet]) -> list[tuple[bytes, int, bool, bool]]:
    """payload, QoS, whether it says that it is of QoS 1, DUP"""
    return [(each.payload, each.qos, each.get(Prop.USER_PROPERTY) == MARK, each.dup) for each in packets]


def published(shard: Shard, *qos: int, retain: bool = False) -> None:
    publisher = Client(shard, "p", 5)
    publisher.say(*[wire.publish("t", b"%d" % each, each, 1 + each, retain=retain) for each in qos])


@pytest.mark.parametrize(
    ("granted", "got"),
    [
        (0, [(b"0", 0, False, False), (b"1", 0, False, False), (b"2", 0, False, False)]),
        (1, [(b"0", 0, False, False), (b"1", 2, True, False), (b"2", 2, True, False)]),
        (2, [(b"0", 0, False, False), (b"1", 2, True, False), (b"2", 2, False, False)]),
    ],
)
def test_qos_1_is_sent_as_qos_2_to_who_asked_and_to_nobody_else(shard: Shard, granted: int, got: list[Any]) -> None:
    """No promise is lowered, none is made that was not asked for, and QoS 0 stays what it is."""
    reader = bridge(shard)
    reader.say(wire.subscribe(1, [("t", granted)]))
    reader.take()
    other = subscribed(shard, "other", "t", options=granted)
    published(shard, 0, 1, 2)
    assert of(messages(reader)) == got
    assert [(each.qos, each.get(Prop.USER_PROPERTY)) for each in messages(other)] == [
        (min(each, granted), None) for each in (0, 1, 2)
    ]


def test_it_holds_for_a_session_that_began_without(shard: Shard) -> None:
    """What waits there is sent so, and what was in flight as it was sent first: its handshake has begun."""
    reader = bridge(shard, asks=False)
    reader.say(wire.subscribe(1, [("t", 1)]))
    published(shard, 1)
    assert of(messages(reader)) == [(b"1", 1, False, False)]
    reader.link.lost("the network")
    published(shard, 2)
    assert of(messages(bridge(shard))) == [(b"1", 1, False, True), (b"2", 2, True, False)]


@pytest.mark.parametrize("granted", [1, 2])
@pytest.mark.parametrize("kill", [False, True])
def test_what_was_in_flight_comes_again_with_the_same_id_and_as_qos_2(kill: bool, granted: int) -> None:
    shard = Shard(SimulatedFiles(), segment_bytes_max=1 << 16)
    reader = bridge(shard)
    reader.say(wire.subscribe(1, [("t", granted)]))
    published(shard, 1, 2)
    before = messages(reader)
    reader.link.lost("the network")
    if kill:
        shard = Shard(shard.files.after_kill(), seed=1, now_us=shard.now_us)
    again = bridge(shard)
    came = messages(again)
    assert of(came) == [(b"1", 2, True, True), (b"2", 2, granted == 1, True)]
    assert [each.packet_id for each in came] == [each.packet_id for each in before]
    for each in came:
        again.say(wire.ack(Kind.PUBREC, each.packet_id))
        (pubrel,) = again.take()
        assert (pubrel.kind, pubrel.packet_id) == (Kind.PUBREL, each.packet_id)
        again.say(wire.ack(Kind.PUBCOMP, each.packet_id))
    window = session_of(shard, "r").window
    assert window is not None and window.in_flight == 0
    shard.end()


@pytest.mark.parametrize("version", [5, 4])
def test_who_asks_no_more_gets_what_was_in_flight_as_qos_2_and_nothing_else(shard: Shard, version: int) -> None:
    """Its packet id is in a handshake of QoS 2, that of a version which cannot be told so too."""
    reader = bridge(shard)
    reader.say(wire.subscribe(1, [("t", 1)]))
    published(shard, 1)
    messages(reader)
    reader.link.lost("the network")
    later = bridge(shard, asks=False, version=version)
    published(shard, 2)
    assert of(messages(later)) == [(b"1", 2, False, True), (b"2", 1, False, False)]


def test_retained_messages_are_raised_too(shard: Shard) -> None:
    published(shard, 1, retain=True)
    reader = bridge(shard)
    reader.say(wire.subscribe(1, [("t", 1)]))
    (came,) = messages(reader)
    assert of([came]) == [(b"1", 2, True, False)] and came.retain
    reader.link.lost("the network")
    (came,) = messages(bridge(shard))
    assert of([came]) == [(b"1", 2, True, True)] and came.retain


@pytest.mark.parametrize("why", ["expired", "forbidden"])
def test_the_id_of_a_message_that_cannot_come_again_is_released_at_the_target(shard: Shard, why: str) -> None:
    """The target may have the message: it would take a later one with the same id for it, and lose that."""
    policy = ruled(shard, "#")
    reader = bridge(shard)
    reader.say(wire.subscribe(1, [("t", 2)]))
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1, properties=[(Prop.MESSAGE_EXPIRY, 10)]))
    (message,) = messages(reader)
    reader.link.lost("the network")
    if why == "expired":
        shard.after(11.0)
    else:
        permit(policy, "other/#")
    again = bridge(shard)
    (pubrel,) = again.take()
    assert (pubrel.kind, pubrel.packet_id) == (Kind.PUBREL, message.packet_id)
    again.link.lost("the network")
    (pubrel,) = bridge(shard).take()
    assert pubrel.kind is Kind.PUBREL, "until it is answered"


def test_messages_that_say_so_are_stored_with_qos_1(shard: Shard) -> None:
    """As a target: its subscribers get them as from their publisher."""
    reader = subscribed(shard, "s", "t", options=2)
    target = bridge(shard)
    target.say(wire.publish("t", b"a", 2, 7, properties=[(Prop.USER_PROPERTY, MARK)]))
    assert [each.kind for each in target.take()] == [Kind.PUBREC]
    target.link.lost("the network")
    target = bridge(shard)
    target.say(wire.publish("t", b"a", 2, 7, dup=True, properties=[(Prop.USER_PROPERTY, MARK)]))
    target.say(wire.ack(Kind.PUBREL, 7))
    assert [each.kind for each in target.take()] == [Kind.PUBREC, Kind.PUBCOMP]
    (got,) = messages(reader)
    assert (got.payload, got.qos, got.get(Prop.USER_PROPERTY)) == (b"a", 1, None)
    assert messages(subscribed(shard, "s2", "t")) == []
