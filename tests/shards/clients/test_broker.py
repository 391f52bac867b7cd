"""The broker as one connection sees it: each call reaches the part that answers it."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.auth.rules import parse
from rumq.session.connection.broker_port import BrokerPort, DeliveryPort, LoginPort, PublishPort
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.handshake.handshake import Handshake
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.keep_alive import KeepAliveMonitor
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.clients.broker import Broker, ClientRecords, Ports
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


class World:
    """A broker over parts that only note calls. entered: connections that have not logged in"""

    def __init__(self, shard: Shard) -> None:
        self.entered: list[object] = []
        self.totals = ShardTotals()
        parts = shard.parts
        records = ClientRecords(parts.clients.registry, JournalRecorder(), KeepAliveMonitor(), self.totals)
        logins: Any = SimpleNamespace(enter=self.entered.append)
        publishing, delivery = parts.clients.broker.publishing, parts.clients.broker.delivery
        self.broker = Broker(
            parts.clock, parts.timers, parts.events, records, Ports(logins, publishing, delivery),
            parts.clients.broker.acks, Limits(connect_seconds_max=5),
        )  # fmt: skip


@pytest.mark.parametrize("port", [BrokerPort, LoginPort, PublishPort, DeliveryPort])
def test_it_has_everything_that_a_connection_asks_for(shard: Shard, port: type) -> None:
    """The ports are checked by type; a name that is put together at run time is not."""
    broker = shard.parts.clients.broker
    part = {LoginPort: broker.logins, PublishPort: broker.publishing, DeliveryPort: broker.delivery}.get(port, broker)
    names = {name for each in port.__mro__ for name in (*vars(each), *getattr(each, "__annotations__", {}))}
    asked = [name for name in names if not name.startswith("_")]
    assert len(asked) > 5 and [name for name in asked if not hasattr(part, name)] == []


def test_it_takes_part_in_the_shard_s_turns(shard: Shard) -> None:
    broker, turn = shard.parts.clients.broker, shard.parts.turn
    assert broker.clock is turn.clock and broker.delivery.commands is turn._commands
    assert broker.publishing.batches is turn.appender._batches


def test_a_new_connection_is_counted_and_has_so_long_for_its_connect(shard: Shard) -> None:
    world = World(shard)
    transport = SimpleNamespace(peer="10.0.0.1:7")
    handshake = world.broker.welcome(transport)
    assert isinstance(handshake, Handshake) and world.entered == [transport]
    assert (world.broker.welcomed, world.totals.sockets) == (1, 1)
    assert handshake.due_at == shard.monotonic + 5


RULES = '[[rule]]\nallow = ["subscribe", "publish"]\ntopics = [{}]\n'


def test_clients_that_are_here_are_held_to_rules_that_have_changed(shard: Shard) -> None:
    policy = ListenerPolicy(rules=parse(RULES.format('"a", "b"'), "rules"))
    welcome = shard.parts.clients.broker.welcome
    shard.parts.clients.broker.welcome = lambda transport: welcome(transport, policy)  # type: ignore[method-assign, assignment, misc]
    reader, publisher = Client(shard, "r", 5), Client(shard, "p", 5)
    reader.say(wire.subscribe(1, [("a", 0), ("b", 0)]))
    reader.take()

    def heard() -> list[bytes]:
        publisher.say(wire.publish("a", b"to a"), wire.publish("b", b"to b"))
        return [packet.payload for packet in reader.take() if packet.kind is Kind.PUBLISH]

    assert heard() == [b"to a", b"to b"]
    policy.rules = parse(RULES.format('"b"'), "rules")
    assert heard() == [b"to a", b"to b"], "rules are read again when somebody says so"
    shard.parts.clients.broker.permit_again()
    shard.settle()
    assert heard() == [b"to b"]


def test_what_was_published_before_rules_changed_is_still_received(shard: Shard) -> None:
    policy = ListenerPolicy(rules=parse(RULES.format('"a"'), "rules"))
    welcome = shard.parts.clients.broker.welcome
    shard.parts.clients.broker.welcome = lambda transport: welcome(transport, policy)  # type: ignore[method-assign, assignment, misc]
    reader, publisher = Client(shard, "r", 5), Client(shard, "p", 5)
    reader.say(wire.subscribe(1, [("a", 0)]))
    reader.take()
    packet = wire.publish("a", b"before")
    publisher.link.receive(packet, 0, len(packet))  # in the same turn
    policy.rules = parse(RULES.format('"b"'), "rules")
    shard.parts.clients.broker.permit_again()
    shard.settle()
    assert [packet.payload for packet in reader.take()] == [b"before"]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("is_resumed", [False, True])
def test_retained_messages_that_wait_for_credit_are_held_to_rules_that_have_changed(
    shard: Shard, qos: int, is_resumed: bool
) -> None:
    """They were found and built under the rules before; `b` may still be had, and nothing comes twice."""
    policy = ListenerPolicy(rules=parse(RULES.format('"#"').replace('"publish"', '"publish", "retain"'), "rules"))
    welcome = shard.parts.clients.broker.welcome
    shard.parts.clients.broker.welcome = lambda transport: welcome(transport, policy)  # type: ignore[method-assign, assignment, misc]
    one_at_a_time = [(Prop.RECEIVE_MAXIMUM, 1), (Prop.SESSION_EXPIRY, 100)]
    reader, publisher = Client(shard, "r", 5, properties=one_at_a_time), Client(shard, "p", 5)
    if is_resumed:
        reader = Client(shard, "r", 5, clean=False, properties=one_at_a_time)
    for number, topic in enumerate(("a/1", "a/2", "a/3", "b"), 1):
        publisher.say(wire.publish(topic, topic.encode(), 2, number, retain=True), wire.ack(Kind.PUBREL, number))
    reader.say(wire.subscribe(1, [("#", qos)]))
    heard = [packet for packet in reader.take() if packet.kind is Kind.PUBLISH]
    assert [packet.payload for packet in heard] == [b"a/1"]
    policy.rules = parse(RULES.format('"b"'), "rules")
    shard.parts.clients.broker.permit_again()
    shard.settle()
    for _ in range(4):
        (packet_id,) = {packet.packet_id for packet in heard[-1:]}
        if qos == 1:
            reader.say(wire.ack(Kind.PUBACK, packet_id))
        else:
            reader.say(wire.ack(Kind.PUBREC, packet_id), wire.ack(Kind.PUBCOMP, packet_id))
        heard += [packet for packet in reader.take() if packet.kind is Kind.PUBLISH]
        if heard[-1].payload == b"b":
            break
    assert [packet.payload for packet in heard] == [b"a/1", b"b"]
