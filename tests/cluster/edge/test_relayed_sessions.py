"""MQTT through an edge to a shard on another node: sessions as if they were there."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.mqtt.topics import matches
from rumq.net.listening.listener import open_sockets
from rumq.net.listening.transports import PLAIN, continue_handed_over
from rumq.process.shard.cluster_connections import relayed_clients
from rumq.session.flow_control.listener_policy import OPEN
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import build_shard
from rumq.shards.links.cluster_listener import ClusterListener, Expected
from tests.cluster.edge.world import CLUSTER, World, connect_of
from tests.commitlog.records import DEAD, NOW, numbers
from tests.conformance import wire
from tests.conformance.replies import decode, frame_size
from tests.conformance.wire import Kind, Packet
from tests.net.websocket.test_websocket import Plain

STATE = StreamSpec("_state", (), 1, "process", 1 << 20, 86_400)
BIG = bytes(range(256)) * 4096


class RealLeader:
    """A shard over a log in memory, as the leader of shard 0."""

    shard = 0

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        store = open_store(
            SimulatedFiles(),
            "data",
            StoreLayout([StreamSpec("main", ("#",), durability="process")], matches, internal=STATE),
            OpenOptions(NOW, random=numbers(1)),
            holder=DEAD,
        )
        self.parts = build_shard(
            store, ShardContext(linger_seconds=0.0), Platform(lambda name, **fields: self.events.append((name, fields)))
        )
        self.parts.operation.startup.read_journal(self.parts.events.tell)
        self.parts.operation.startup.advance()
        self.site = SimpleNamespace(pump=self.parts.pump)
        self.sock = open_sockets("127.0.0.1", 0, 100)[0]

        def take(kind: str, sock: Any, peer: str, data: bytes, listener: int) -> None:
            continue_handed_over(self.parts.pump, kind, sock, peer, data, 1 << 20, self.parts.clients.broker.welcome)

        self.listener = ClusterListener(
            self.sock, self.parts.pump, Expected(CLUSTER, 0, lambda: range(1, 2)),
            {"client": relayed_clients(take, {0: OPEN})}, self.parts.timers, self.parts.events,
        )  # fmt: skip

    @property
    def node_port(self) -> int:
        return int(self.sock.getsockname()[1]) - 1

    def named(self, name: str) -> list[dict[str, Any]]:
        return [fields for told, fields in self.events if told == name]

    def die(self) -> None:
        self.listener.close()
        self.sock.close()
        self.parts.pump.close()
        self.parts.stop()


class Mqtt(Plain):
    """A client that reads whole packets."""

    version = 5

    def packet(self) -> Packet:
        head = self.read(2)
        while (size := frame_size(head)) is None:
            head += self.read(1)
        start, end = size
        whole = head + self.read(end - len(head))
        return decode(whole[0], whole[start:end], self.version)


@pytest.fixture
def leader(world: World) -> Iterator[RealLeader]:
    made: Any = RealLeader()
    world.leaders.append(made)
    world.lead({0: made})
    yield made
    assert not made.named("task.failed") and not made.named("client.crashed")


def client(world: World, address: Any, connect: bytes) -> Mqtt:
    made = Mqtt(world, address)  # type: ignore[arg-type]
    made.write(connect)
    assert made.packet().kind is Kind.CONNACK
    return made


def test_a_message_goes_from_one_relayed_client_to_another(world: World, leader: RealLeader) -> None:
    address = world.listen(PLAIN)
    subscriber = client(world, address, connect_of(0))
    subscriber.write(wire.subscribe(1, [("t/#", 1)]))
    assert subscriber.packet().kind is Kind.SUBACK
    publisher = client(world, address, connect_of(0, 1))
    publisher.write(wire.publish("t/1", BIG, qos=1, packet_id=7))
    assert publisher.packet().kind is Kind.PUBACK
    got = subscriber.packet()
    assert (got.kind, got.payload) == (Kind.PUBLISH, BIG)
    peers = [fields["peer"] for fields in leader.named("client.connected")]
    assert peers == [f"127.0.0.1:{each.sock.getsockname()[1]}" for each in (subscriber, publisher)]
    for each in (subscriber, publisher):
        each.close()


def test_a_subscriber_that_reads_slowly_gets_everything_in_order(world: World, leader: RealLeader) -> None:
    """More than all outboxes on the way hold: the rest waits in the log."""
    address = world.listen(PLAIN)
    subscriber, publisher = client(world, address, connect_of(0)), client(world, address, connect_of(0, 1))
    subscriber.write(wire.subscribe(1, [("t/#", 1)]))
    assert subscriber.packet().kind is Kind.SUBACK
    count = 48
    for number in range(count):
        publisher.write(wire.publish("t/1", bytes([number]) + BIG, qos=1, packet_id=number + 1))
        assert publisher.packet().kind is Kind.PUBACK
    for number in range(count):
        got = subscriber.packet()
        assert got.payload == bytes([number]) + BIG
        subscriber.write(wire.ack(Kind.PUBACK, got.packet_id))
    for each in (subscriber, publisher):
        each.close()


def test_a_session_is_taken_over_by_another_relayed_connection(world: World, leader: RealLeader) -> None:
    address = world.listen(PLAIN)
    first = client(world, address, connect_of(0))
    client(world, address, connect_of(0)).close()
    last = first.packet()
    assert (last.kind, last.code) == (Kind.DISCONNECT, 0x8E)
    assert first.read(1) == b""
    first.close()


def test_what_a_leader_refuses_is_told_by_the_leader(world: World, leader: RealLeader) -> None:
    made = Mqtt(world, world.listen(PLAIN))  # type: ignore[arg-type]
    made.write(connect_of(0, properties=[(wire.Prop.AUTH_METHOD, "unknown")]))
    refused = made.packet()
    assert (refused.kind, refused.code) == (Kind.CONNACK, 0x8C)
    assert made.read(1) == b"" and leader.named("client.refused") and not world.events
    made.close()


def test_what_comes_right_behind_connect_is_served_too(world: World, leader: RealLeader) -> None:
    made = client(world, world.listen(PLAIN), connect_of(0) + wire.frame(0xC0))
    assert made.packet().kind is Kind.PINGRESP
    made.close()
