"""Clients whose leader is on another node: bytes both ways, whatever the transport; the end of either side."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from rumq.cluster.connections.detour import DIRECT_SECONDS
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.edge import path_watch
from rumq.net.listening.proxy_protocol import ProxyOptions
from rumq.net.listening.transports import PLAIN, Transports
from rumq.net.tls.tls import TlsServer
from rumq.net.transport.relay import RELAY_BYTES
from rumq.net.websocket.websocket_handshake import WebSocketOptions
from rumq.shards.links.relay_callers import RelayCallers
from tests.cluster.edge.world import HERE, NAMES, Leader, Silent, World, connect_of
from tests.net.authorities import Authorities
from tests.net.conftest import Trusting
from tests.net.kernels.test_frames import frame
from tests.net.listening.test_proxy_protocol import HEADERS
from tests.net.site import TlsClient
from tests.net.websocket.test_websocket import Peer, Plain, request
from tests.shards.links.test_relay_callers import nowhere as nowhere

BIG = bytes(range(256)) * 4096
CONNECT = connect_of(0)
CONNACK = bytes([0x20, 3, 0, 0, 0])
HERE_PROXY = ProxyOptions(networks=("127.0.0.1",))


class Through:
    """A client's bytes, in WebSocket frames or not."""

    def __init__(self, under: Any, is_framed: bool) -> None:
        self.under = under
        self.is_framed = is_framed
        if is_framed:
            under.write(request())
            assert Peer(under).head().startswith("HTTP/1.1 101 ")

    def write(self, data: bytes) -> None:
        self.under.write(frame(2, data) if self.is_framed else data)

    def read(self, size: int) -> bytes:
        return Peer(self.under).content(size) if self.is_framed else bytes(self.under.read(size))


@pytest.fixture(params=["tcp", "ws", "tls", "wss", "proxy"])
def peer(request: pytest.FixtureRequest, world: World, authorities: Authorities, trusting: Trusting) -> Iterator[Any]:
    """(kind, a client of the edge)."""
    kind = str(request.param)
    options = WebSocketOptions() if "ws" in kind else None
    client: Any
    if kind in ("tls", "wss"):
        address = world.listen(Transports(TlsServer(authorities.mutual()), options))
        client = TlsClient(world, address, trusting("client"))  # type: ignore[arg-type]
        client.shake_hands()
    else:
        proxy = HERE_PROXY if kind == "proxy" else None
        client = Plain(world, world.listen(Transports(None, options, proxy)))  # type: ignore[arg-type]
        if proxy:
            client.write(HEADERS[1])
    yield kind, Through(client, options is not None)
    client.close()


def relayed(world: World, through: Any) -> tuple[Leader, Any]:
    """The leader elsewhere, and its handler of the client, after CONNECT."""
    leader = world.leader(0)
    world.lead({0: leader, 1: HERE})
    through.write(CONNECT)
    assert through.read(len(CONNECT)) == CONNECT
    return leader, leader.links[0]


def plain(world: World) -> Plain:
    return Plain(world, world.listen(PLAIN))  # type: ignore[arg-type]


def test_bytes_go_both_ways_and_who_it_is_is_known(world: World, peer: Any) -> None:
    kind, through = peer
    leader, link = relayed(world, through)
    through.write(b"more")
    assert through.read(4) == b"more"
    assert link.got == CONNECT + b"more"
    connection = link.transport
    certificate = connection.certificate
    who = certificate.common_name if certificate else None
    assert who == ("pump-7" if kind in ("tls", "wss", "proxy") else None)
    assert connection.peer.startswith("203.0.113.7:" if kind == "proxy" else "127.0.0.1:")
    greeting = leader.greeted[0].greeting
    assert (greeting.kind, greeting.node, greeting.shard, greeting.epoch) == ("client", HERE, 0, 1)
    assert greeting.peer == connection.peer
    assert len(world.edge.relays) == 1 and not world.events and not leader.events


def test_connect_may_come_byte_by_byte(world: World, peer: Any) -> None:
    _, through = peer
    leader = world.leader(0)
    world.lead({0: leader, 1: HERE})
    for byte in CONNECT:
        through.write(bytes([byte]))
        world.turn()
    assert through.read(len(CONNECT)) == CONNECT
    assert leader.links[0].got == CONNECT


def test_a_lot_comes_back_in_order(world: World, peer: Any) -> None:
    _, through = peer
    relayed(world, through)
    for at in range(0, len(BIG), 1 << 16):
        through.write(BIG[at : at + (1 << 16)])
        assert through.read(1 << 16) == BIG[at : at + (1 << 16)]


def waiting(world: World) -> int:
    """Bytes that wait at the edge for one socket, at most."""
    return max(sum(len(data) for data, _ in each.queue or ()) for each in world.edge.pump.connections.values())


def test_a_client_that_does_not_read_stops_its_leader_not_the_edge(world: World, peer: Any) -> None:
    """What waits at the edge is bounded: the leader's own outbox fills."""
    _, through = peer
    _, link = relayed(world, through)
    connection = link.transport
    offered = 0
    while not (connection.blocked and world.turn(20) is None and connection.blocked):
        connection.write(BIG)
        offered += 1
        world.turn(20)
    assert waiting(world) <= 3 * RELAY_BYTES
    assert through.read(offered * len(BIG)) == BIG * offered


def test_a_leader_that_does_not_read_stops_the_client(world: World) -> None:
    through = plain(world)
    _, link = relayed(world, through)
    link.is_silent = True
    link.transport.pause_reading()
    sent = idle = 0
    while idle < 20:  # until nobody takes anything any more
        try:
            sent += through.sock.send(BIG[sent & 0xFF :])
            idle = 0
        except BlockingIOError:
            idle += 1
            world.turn()
    assert waiting(world) <= 3 * RELAY_BYTES < sent
    link.transport.resume_reading()
    world.until(lambda: len(link.got) == len(CONNECT) + sent)
    assert link.got[len(CONNECT) :] == (BIG * (sent // len(BIG) + 1))[:sent]
    through.close()


def test_the_last_words_of_a_client_reach_its_leader(world: World, peer: Any) -> None:
    _, through = peer
    leader, link = relayed(world, through)
    through.write(b"last words")
    through.under.close()
    world.until(lambda: link.lost_why)
    assert link.got == CONNECT + b"last words"
    world.until(lambda: not world.edge.pump.connections and not leader.site.pump.connections)
    assert len(world.edge.relays) == 0


def test_the_last_words_of_a_leader_reach_its_client(world: World, peer: Any) -> None:
    _, through = peer
    _, link = relayed(world, through)
    link.transport.write(b"bye")
    link.transport.close()
    assert through.read(3) == b"bye"
    if through.is_framed:
        assert Peer(through.under).frame()[0] == 8
    assert through.under.read(1) == b""
    world.until(lambda: not world.edge.pump.connections)


def test_the_end_of_a_leader_ends_its_clients(world: World, peer: Any) -> None:
    _, through = peer
    leader, _ = relayed(world, through)
    leader.die()
    world.leaders.remove(leader)
    while through.under.read(1):
        pass
    world.until(lambda: not world.edge.pump.connections)


def test_a_view_with_another_leader_ends_the_clients_of_the_old_one(world: World, peer: Any) -> None:
    """Also when the old one still runs, and does not know."""
    _, through = peer
    leader, _ = relayed(world, through)
    world.lead({0: leader, 1: None})  # another shard's change is not theirs
    world.turn(3)
    assert len(world.edge.relays) == 1
    world.epochs[0] += 1
    world.lead({0: world.leader(0, 2), 1: HERE})
    world.turn(3)
    assert world.edge.pump.connections, "the old leader may still say why"
    world.wait(0.3)
    while through.under.read(1):
        pass
    world.until(lambda: not world.edge.pump.connections)


def test_clients_of_a_leader_that_changes_its_members_stay(world: World, peer: Any) -> None:
    """It goes on in the next epoch: those that are there stay, and new ones are taken, whatever the edge has seen."""
    _, through = peer
    leader, _ = relayed(world, through)
    leader.epoch = 2
    late = plain(world)
    late.write(CONNECT)  # the edge has not seen it yet
    assert late.read(len(CONNECT)) == CONNECT
    world.epochs[0] += 1
    world.lead({0: leader, 1: HERE})
    world.wait(0.3)
    assert len(world.edge.relays) == 2
    new = plain(world)
    new.write(CONNECT)
    assert new.read(len(CONNECT)) == CONNECT and len(world.edge.relays) == 3
    assert leader.greeted[-1].greeting.epoch == 2 and not leader.events


def test_a_cut_path_ends_the_clients_of_the_leader_behind_it_and_no_others(
    world: World, peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else may notice the cut, so that the same leader goes on."""
    _, through = peer
    relayed(world, through)
    again: list[int] = [2]
    monkeypatch.setattr(path_watch, "retransmissions", lambda sock: again[0])
    world.wait(0.6)
    assert len(world.edge.relays) == 1
    again[0] = 3
    world.wait(0.6)
    while through.under.read(1):
        pass
    world.until(lambda: not len(world.edge.relays))


def test_a_connection_that_is_answered_retransmits_nothing() -> None:
    one, other = socket.socketpair()
    server = socket.create_server(("127.0.0.1", 0))
    with one, other, server, socket.create_connection(server.getsockname()) as sock:
        assert path_watch.retransmissions(sock) == path_watch.retransmissions(one) == 0
        assert not path_watch.is_cut([sock, one])


def test_a_client_is_no_pending_login_once_its_session_has_answered(world: World, peer: Any) -> None:
    _, through = peer
    leader = world.leader(0, link=Silent)
    world.lead({0: leader})
    through.write(CONNECT)
    link = world.until(lambda: leader.links)[0]
    world.until(lambda: len(world.edge.relays) == 1)
    assert len(world.edge.pump.pending_logins) == 1
    link.transport.write(CONNACK)
    assert through.read(len(CONNACK)) == CONNACK
    assert len(world.edge.pump.pending_logins) == 0


def test_a_leader_that_changes_between_connect_and_the_dial_loses_nothing(world: World, peer: Any) -> None:
    _, through = peer
    old = world.leader(0)
    world.lead({0: old})
    old.die()
    world.leaders.remove(old)
    through.write(CONNECT)
    world.until(lambda: len(world.edge.placement) == 1)
    world.wait(2.0)
    world.epochs[0] += 1
    world.lead({0: world.leader(0, 2)})
    assert through.read(len(CONNECT)) == CONNECT


def test_a_leader_that_refuses_is_asked_again_until_another_leads(world: World) -> None:
    """It does not know yet that it leads, or that it does not."""
    through = plain(world)
    early, later = world.leader(0), world.leader(0, 2)
    early.listener._expected = early.listener._expected._replace(epochs=lambda: range(1))
    world.lead({0: early})
    through.write(CONNECT)
    world.until(lambda: len(early.events) == 1)
    world.wait(1.0)
    assert len(early.events) > 1 and not early.greeted and len(world.edge.placement) == 1
    world.epochs[0] += 1
    world.lead({0: later})
    assert through.read(len(CONNECT)) == CONNECT
    assert [name for name, _ in early.events] == ["connection.refused"] * len(early.events)


def test_a_leader_that_does_not_answer_is_given_up(world: World) -> None:
    """Its node is up and its process hangs; MQTT 5.0, 3.2.2.2: 0x88."""
    through = plain(world)
    mute = world.leader(0)
    mute.listener.close()
    world.lead({0: mute})
    through.write(CONNECT)
    world.until(lambda: len(world.edge.pump.connections) == 2)
    world.wait(10.5)
    assert through.read(5)[3] == 0x88
    (told,) = world.named("client.refused")
    assert told["client_id"] == NAMES[0] and "no answer within 2 s" in told["why"]
    world.wait(2.5)  # the last dial
    world.until(lambda: not world.edge.pump.connections)


def test_a_leader_that_comes_to_this_node_gets_those_that_wait(world: World) -> None:
    through = plain(world)
    gone = socket.socket()
    gone.bind(("127.0.0.1", 0))  # nobody listens there
    leader = world.leader(0)
    leader.sock.close()
    leader.sock = gone
    world.lead({0: leader})
    through.write(CONNECT)
    world.until(lambda: len(world.edge.placement) == 1)
    world.wait(1.0)
    world.epochs[0] += 1
    world.lead({0: HERE})
    (found,) = world.until(lambda: world.given(0))
    assert found[2] == CONNECT


def test_what_a_client_sends_while_it_waits_is_read_once_it_has_a_leader(world: World, peer: Any) -> None:
    _, through = peer
    through.write(CONNECT)
    world.until(lambda: len(world.edge.placement) == 1)
    through.write(b"more")
    world.wait(1.0)
    world.lead({0: world.leader(0)})
    assert through.read(len(CONNECT) + 4) == CONNECT + b"more"


def test_a_leader_that_is_stopped_is_left_as_soon_as_another_leads(world: World, peer: Any) -> None:
    """Its kernel accepts, and nobody answers: no time passes here."""
    _, through = peer
    stopped = world.leader(0)
    world.lead({0: stopped})
    world.leaders.remove(stopped)
    through.write(CONNECT)
    world.until(lambda: len(world.edge.placement) == 1)
    world.turn(5)
    world.epochs[0] += 1
    world.lead({0: world.leader(0, 2)})
    assert through.read(len(CONNECT)) == CONNECT
    stopped.die()


def test_a_leader_beyond_a_cut_is_reached_by_way_of_another_ones_node(world: World, nowhere: int) -> None:
    through = plain(world)
    home, third = world.leader(0), world.leader(1)
    ports: Any = SimpleNamespace(later=third.site.later)
    whole = world.view({0: home, 1: third})
    relays = RelayCallers(third.site.pump, HostAddresses(), ports, lambda: whole, None)
    third.listener._takers = {**third.listener._takers, "relay": relays.take}
    nodes = [
        msgspec.structs.replace(each, port=nowhere - 1) if each.id == whole.shards[0].record.leader else each
        for each in whole.nodes
    ]
    world.edge.placement.view_changed(msgspec.structs.replace(whole, nodes=nodes))
    through.write(CONNECT)
    world.until(lambda: len(world.edge.placement) == 1)
    world.wait(DIRECT_SECONDS + 0.1)
    assert through.read(len(CONNECT)) == CONNECT and len(relays) == 1
    assert home.greeted[0].greeting.peer.startswith("127.0.0.1:"), "whose client it is"
    for at in range(0, len(BIG), 1 << 16):
        through.write(BIG[at : at + (1 << 16)])
        assert through.read(1 << 16) == BIG[at : at + (1 << 16)]
    assert world.edge.relays._ways.is_cut(str(whole.shards[0].record.leader)), "the next one goes that way at once"
