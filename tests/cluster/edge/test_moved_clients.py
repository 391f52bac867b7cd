"""Clients at an edge whose shard gets another leader as planned: their connections go on, whatever their layers are."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from rumq.cluster.edge.travellers import WAITING_SECONDS
from rumq.cluster.links.client_moves import MOVED
from rumq.net.listening.listener import open_sockets
from rumq.net.listening.transports import continue_handed_over
from rumq.process.shard.cluster_connections import relayed_clients
from rumq.session.flow_control.listener_policy import OPEN
from rumq.session.moves.moved_client import capture, decode_moved, encode_moved
from rumq.shards.links.cluster_listener import Caller, ClusterListener, Expected
from rumq.shards.moves.arrivals import continue_moved
from rumq.shards.moves.relayed_clients import Relayed, RelayedClients
from tests.cluster.edge.test_relayed_sessions import Mqtt
from tests.cluster.edge.test_remote_relay import Through
from tests.cluster.edge.test_remote_relay import peer as peer
from tests.cluster.edge.world import CLUSTER, HERE, World, connect_of
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.net.websocket.test_websocket import Peer
from tests.shards.moves.world import OUTBOX_BYTES_MAX, Process
from tests.shards.moves.world import World as Log


class MovingLeader:
    """A shard that is led over a log by one process after another, each on another node."""

    shard = 0

    def __init__(self, log: Log, epoch: int) -> None:
        self.log, self.epoch = log, epoch
        self.process: Process = log.process
        self.site = SimpleNamespace(pump=self.process.parts.pump, end=lambda: None)
        self.sock = open_sockets("127.0.0.1", 0, 100)[0]
        clients = relayed_clients(self.take, {0: OPEN})

        def take_client(caller: Caller) -> None:
            self.process.relays.note(caller)
            clients(caller)

        parts = self.process.parts
        self.listener = ClusterListener(
            self.sock, parts.pump, Expected(CLUSTER, 0, lambda: range(epoch, epoch + 1)),
            {"client": take_client, "edge": self.process.relays.take}, parts.timers, parts.events,
        )  # fmt: skip

    def take(self, kind: str, sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
        if kind == MOVED:
            continue_moved(self.process.parts, OPEN, sock, peer, data, OUTBOX_BYTES_MAX)
        else:
            continue_handed_over(
                self.process.parts.pump,
                kind,
                sock,
                peer,
                data,
                OUTBOX_BYTES_MAX,
                self.process.parts.clients.broker.welcome,
            )

    @property
    def node_port(self) -> int:
        return int(self.sock.getsockname()[1]) - 1

    def hold(self, world: World) -> None:
        hold = self.process.hold

        def is_settled() -> bool:
            hold.hold()
            return hold.is_settled()

        world.until(is_settled)
        hold.note()
        world.turn(5)

    def succeeded(self, world: World) -> MovingLeader:
        """Give the clients away; another process leads."""
        self.process.hold.depart(0, self.epoch, self.log.give)
        self.process.relays.flush()
        self.listener.close()
        self.sock.close()
        world.leaders.remove(self)  # type: ignore[arg-type]
        self.process.stop()
        self.log.files = self.log.files.after_kill()
        self.log.process = Process(self.log)
        made = MovingLeader(self.log, self.epoch + 1)
        world.leaders.append(made)  # type: ignore[arg-type]
        world.epochs[0] = made.epoch
        return made

    def die(self) -> None:
        self.listener.close()
        self.sock.close()


@pytest.fixture
def leader(world: World) -> Iterator[MovingLeader]:
    log = Log()
    made = MovingLeader(log, 1)
    world.leaders.append(made)  # type: ignore[arg-type]
    lead(world, made)
    yield made
    assert not log.process.named("task.failed") and not log.process.named("client.crashed")
    for each in world.leaders:
        each.die()
    world.leaders.clear()
    log.end()


def lead(world: World, leader: Any, *, moves: bool = True) -> None:
    """The edge sees this leader, on a node that goes on with clients."""
    view = world.view({0: leader})
    nodes = [msgspec.structs.replace(each, moves=moves, mqtt=[f"{each.id[:2]}.example:1883"]) for each in view.nodes]
    world.edge.seen(msgspec.structs.replace(view, nodes=nodes))


class Speaker(Mqtt):
    """MQTT over whatever a client of `peer` speaks."""

    def __init__(self, through: Through) -> None:
        self._through, self._buffer = through, b""

    def write(self, data: bytes, cut: int = 0) -> None:
        self._through.write(data)

    def read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            under = self._through.under
            more = Peer(under).frame()[1] if self._through.is_framed else under.read(size - len(self._buffer))
            if not more:
                break
            self._buffer += more
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found


def client(through: Through, number: int = 0) -> Speaker:
    made = Speaker(through)
    made.write(connect_of(0, number))
    assert made.packet().kind is Kind.CONNACK
    return made


def test_a_relayed_client_goes_on_at_another_node(world: World, leader: MovingLeader, peer: Any) -> None:
    _, through = peer
    made = client(through)
    made.write(wire.subscribe(1, [("t/#", 2)]))
    assert made.packet().kind is Kind.SUBACK
    made.write(wire.publish("t/1", b"a", qos=2, packet_id=5, properties=[(Prop.TOPIC_ALIAS, 2)]))
    kinds = {}
    for _ in range(2):
        packet = made.packet()
        kinds[packet.kind] = packet
    assert set(kinds) == {Kind.PUBREC, Kind.PUBLISH}
    world.turn(20)  # the link of the edge is there
    for _ in range(3):
        leader.hold(world)
        made.write(wire.PINGREQ)  # nobody reads it yet
        leader = leader.succeeded(world)
        world.turn(20)
        lead(world, leader)
        assert made.packet().kind is Kind.PINGRESP
        assert len(world.edge.relays) == 1 and len(world.edge.travellers) == 0
    made.write(wire.ack(Kind.PUBREL, 5) + wire.ack(Kind.PUBREC, kinds[Kind.PUBLISH].packet_id))
    assert {made.packet().kind for _ in range(2)} == {Kind.PUBCOMP, Kind.PUBREL}
    made.write(wire.publish("", b"b", qos=1, packet_id=6, properties=[(Prop.TOPIC_ALIAS, 2)]))
    got = {packet.kind: packet for packet in (made.packet(), made.packet())}
    assert (got[Kind.PUBLISH].topic, got[Kind.PUBLISH].payload) == ("t/1", b"b")
    assert not leader.process.named("client.connected")


def test_what_a_leader_had_not_read_of_a_relayed_client_goes_along(
    world: World, leader: MovingLeader, peer: Any
) -> None:
    """Its publishers are paused while a shard is handed over."""
    _, through = peer
    made = client(through)
    world.turn(20)
    [session] = leader.process.parts.clients.broker.registry.sessions.values()
    assert session.link is not None
    for round in range(3):
        session.link.transport.pause_reading()
        for number in range(20):
            made.write(wire.publish("t/1", bytes(1000), qos=1, packet_id=number + 1 + 20 * round))
            world.turn(1)
        leader.hold(world)
        leader = leader.succeeded(world)
        world.turn(20)
        lead(world, leader)
        assert [made.packet().packet_id for _ in range(20)] == [number + 1 + 20 * round for number in range(20)]
        [session] = leader.process.parts.clients.broker.registry.sessions.values()
        assert session.link is not None


def test_figures_that_are_asked_for_meanwhile_keep_nobody_and_lose_nothing(
    world: World, leader: MovingLeader, peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take the bytes of a connection from it; the edge waits for as many as the leader says that it has sent."""
    told = []
    move = RelayedClients.move

    def noted(self: RelayedClients, relayed: Relayed, sent: int, state: bytes) -> None:
        told.append(sent)
        move(self, relayed, sent, state)

    monkeypatch.setattr(RelayedClients, "move", noted)
    _, through = peer
    made = client(through)
    world.turn(20)
    for number in range(3):
        made.write(wire.publish("t/1", b"", qos=1, packet_id=number + 1))
        assert made.packet().packet_id == number + 1
        leader.process.count()
        world.turn(20)
        leader.hold(world)
        [end] = world.edge.relays._moves.ends.values()
        came = end.near.shard_end.received
        leader = leader.succeeded(world)
        assert told.pop() == came > 0
        world.turn(20)
        lead(world, leader)


def test_each_of_several_clients_goes_on_after_the_edge_has_seen_the_next_leader(
    world: World, leader: MovingLeader
) -> None:
    """The first one that leaves must not end the link that tells of the others."""
    address = world.listen()
    clients = [Mqtt(world, address) for _ in range(5)]  # type: ignore[arg-type]
    for number, each in enumerate(clients):
        each.write(connect_of(0, number))
        assert each.packet().kind is Kind.CONNACK
    world.turn(20)
    leader.hold(world)
    for number, each in enumerate(clients):
        each.write(wire.publish("t/1", b"x", qos=1, packet_id=number + 1))
    world.epochs[0] = 2
    lead(world, None)  # who leads next has won, and is not there yet
    leader = leader.succeeded(world)
    world.turn(20)
    lead(world, leader)
    assert [each.packet().packet_id for each in clients] == [1, 2, 3, 4, 5]
    for each in clients:
        each.close()


def test_a_relayed_client_goes_on_in_a_process_of_its_own_node(world: World, leader: MovingLeader, peer: Any) -> None:
    _, through = peer
    made = client(through)
    world.turn(20)
    leader.hold(world)
    made.write(wire.PINGREQ)
    leader = leader.succeeded(world)
    world.turn(20)
    took: list[Any] = []

    def take(sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
        took.append(sock)
        leader.take(MOVED, sock, peer, data, listener)

    world.local[0].takers[MOVED] = take
    lead(world, HERE)
    world.until(lambda: world.local[0].hear() or took)
    assert made.packet().kind is Kind.PINGRESP
    assert len(world.edge.relays) == 0


def test_a_client_of_a_leader_here_goes_on_at_another_node(world: World, leader: MovingLeader, peer: Any) -> None:
    """Its socket comes back, or the end of a pair whose other end has its layers."""
    _, through = peer
    lead(world, HERE)

    def take(kind: str) -> Any:
        return lambda sock, peer, data, listener: leader.take(kind, sock, peer, data, listener)

    for kind in ("client", "known"):
        world.local[0].takers[kind] = take(kind)
    made = Speaker(through)
    made.write(connect_of(0))
    world.until(lambda: world.local[0].hear() or leader.process.named("client.connected"))
    assert made.packet().kind is Kind.CONNACK
    leader.hold(world)
    made.write(wire.PINGREQ)
    leader = leader.succeeded(world)
    [(fd, address, data)] = leader.log.on_the_way
    leader.log.on_the_way.clear()
    world.local[0].give(len(world.doors) - 1, MOVED, fd, address, data, 0)
    world.local[0].flush()
    world.turn(20)
    assert len(world.edge.travellers) == 1
    lead(world, leader)
    assert made.packet().kind is Kind.PINGRESP
    assert len(world.edge.travellers) == 0


def test_a_leader_that_stays_goes_on_with_its_relayed_clients(world: World, leader: MovingLeader, peer: Any) -> None:
    _, through = peer
    made = client(through)
    world.turn(20)
    leader.hold(world)
    made.write(wire.PINGREQ)
    world.turn(20)
    leader.process.hold.release()
    assert made.packet().kind is Kind.PINGRESP


def test_who_finds_no_leader_in_time_is_told_where_else_to_go(world: World, leader: MovingLeader, peer: Any) -> None:
    _, through = peer
    made = client(through)
    world.turn(20)
    leader.hold(world)
    leader.succeeded(world)
    world.turn(20)
    assert len(world.edge.travellers) == 1
    world.wait(WAITING_SECONDS + 0.5)
    last = made.packet()
    assert (last.kind, last.code) == (Kind.DISCONNECT, 0x9C)
    assert dict(last.properties)[Prop.SERVER_REFERENCE].endswith(".example:1883")  # type: ignore[union-attr]
    assert len(world.edge.travellers) == 0


def test_an_edge_that_stops_has_its_clients_told_where_else_to_go(
    world: World, leader: MovingLeader, peer: Any
) -> None:
    _, through = peer
    made = client(through)
    world.turn(20)
    world.edge.relays.leave("n3.example:1883")
    last = made.packet()
    assert (last.kind, last.code) == (Kind.DISCONNECT, 0x9C)
    assert dict(last.properties)[Prop.SERVER_REFERENCE] == "n3.example:1883"


def test_a_leader_of_a_version_that_moves_nobody_gets_no_link_and_no_client(world: World, leader: MovingLeader) -> None:
    lead(world, leader, moves=False)
    made = Mqtt(world, world.listen())  # type: ignore[arg-type]
    made.write(connect_of(0))
    assert made.packet().kind is Kind.CONNACK
    world.turn(20)
    leader.process.hold.hold()
    assert leader.process.hold.is_settled()  # there is nobody who could move
    leader.process.hold.note()
    assert leader.process.hold.depart(0, 1, leader.log.give) == 0
    made.close()


def test_what_a_move_carries_is_read_again(world: World, leader: MovingLeader) -> None:
    made = Mqtt(world, world.listen())  # type: ignore[arg-type]
    made.write(connect_of(0, keep_alive=33))
    assert made.packet().kind is Kind.CONNACK
    [session] = leader.process.parts.clients.broker.registry.sessions.values()
    moved = capture(session.link, 0, 1, b"in", b"out")  # type: ignore[arg-type]
    assert decode_moved(encode_moved(moved)) == moved
    assert (moved.keep_alive, moved.unparsed, moved.unsent, moved.owner) == (
        33.0,
        b"in",
        b"out",
        session.owner,
    )
    made.close()
