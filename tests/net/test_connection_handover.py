"""A client accepted in one shard and at home in another: plain, WebSocket, TLS, with what is known of it."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from rumq.net.client_placement import ClientPlacement
from rumq.net.connection import Connection
from rumq.net.listening.proxy_protocol import ProxyOptions
from rumq.net.listening.transports import Transports, continue_handed_over
from rumq.net.sockets.fd_passing import FdPassing, make_shard_sockets
from rumq.net.tls.tls import TlsServer
from rumq.net.websocket.websocket_handshake import WebSocketOptions
from tests.net.authorities import Authorities
from tests.net.conftest import Trusting
from tests.net.kernels.test_frames import frame
from tests.net.listening.test_proxy_protocol import HEADERS
from tests.net.site import Echo, Site, TlsClient
from tests.net.websocket.test_websocket import Peer, Plain, request

BIG = bytes(range(256)) * 4096
HERE = ProxyOptions(networks=("127.0.0.1",))


class Shards:
    """Two of them: `first` accepts, and everybody lives in `second`."""

    def __init__(self) -> None:
        doors = self.sockets = make_shard_sockets(2)
        self.doors = [FdPassing(doors, index, lambda seconds, call: None) for index in range(2)]
        self.homes = ClientPlacement(self.doors[0], 0, 2)
        self.stranger = next(name for name in "abcdef" if not self.homes.is_here(name))
        self.first, self.second = Site(link=self.handing), Site()
        self.second.pump.watch(self.doors[1].fd, self.doors[1].hear)
        for kind in ("client", "known"):
            self.doors[1].takers[kind] = self.taker(kind)

    def handing(self, connection: Connection) -> Any:
        shards = self

        class Handing(Echo):
            def receive(self, data: Any, pos: int, end: int) -> int:
                assert shards.homes.hand_over(connection, 0, shards.stranger, bytes(data[pos:end]))
                shards.doors[0].flush()
                return end

        return Handing(connection)

    def taker(self, kind: str) -> Any:
        def take(sock: socket.socket, peer: str, data: bytes, _: int) -> None:
            continue_handed_over(self.second.pump, kind, sock, peer, data, 1 << 20, self.second.welcome)

        return take

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.first.pump.turn(0.0)
            self.second.pump.turn(0.002)

    def until(self, is_so: Any) -> Any:
        for _ in range(2000):
            if found := is_so():
                return found
            self.turn()
        raise AssertionError("it never came")

    # As a client sees them

    def listen(self, transports: Transports) -> Any:
        return self.first.listen(transports)


@pytest.fixture
def shards() -> Iterator[Shards]:
    made = Shards()
    yield made
    made.first.end()
    made.second.end()
    for door in made.sockets:
        door.inside.close()
        door.outside.close()


@pytest.fixture(params=["tcp", "ws", "tls", "wss", "proxy+tcp", "proxy+ws"])
def peer(request: pytest.FixtureRequest, shards: Shards, authorities: Authorities, trusting: Trusting) -> Iterator[Any]:
    """(kind, what a client sends and reads through)."""
    kind = str(request.param)
    options = WebSocketOptions() if "ws" in kind else None
    proxy = HERE if kind.startswith("proxy") else None
    client: Any
    if kind in ("tls", "wss"):
        address = shards.listen(Transports(TlsServer(authorities.mutual()), options, proxy))
        client = TlsClient(shards, address, trusting("client"))  # type: ignore[arg-type]
        client.shake_hands()
    else:
        client = Plain(shards, shards.listen(Transports(None, options, proxy)))  # type: ignore[arg-type]
        if proxy:
            client.write(HEADERS[1])
    through = Through(client, options is not None)
    yield kind, through
    client.close()


class Through:
    """Bytes, in WebSocket frames or not."""

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


def test_bytes_go_both_ways_and_who_it_is_is_known(shards: Shards, peer: Any) -> None:
    kind, through = peer
    through.write(b"CONNECT")
    assert through.read(7) == b"CONNECT"
    through.write(b"more")
    assert through.read(4) == b"more"
    connection = shards.second.links[0].transport
    assert shards.second.links[0].got == b"CONNECTmore"
    who = connection.certificate.common_name if connection.certificate else None
    assert who == ("pump-7" if kind not in ("tcp", "ws") else None)
    assert connection.peer.startswith("203.0.113.7:" if kind.startswith("proxy") else "127.0.0.1:")
    # Only TLS stays where it was accepted.
    assert len(shards.first.pump.connections) == (2 if kind in ("tls", "wss") else 0)
    assert not shards.first.events and not shards.second.events


@pytest.mark.parametrize("peer", ["tls", "wss"], indirect=True)
def test_a_relayed_client_is_no_pending_login_once_its_session_has_answered(shards: Shards, peer: Any) -> None:
    """Else it would be closed to make room for others, long after its login."""
    _, through = peer
    through.write(b"CONNECT")
    assert through.read(7) == b"CONNECT"
    (client,) = (each for each in shards.first.pump.connections.values() if not each.link.is_bus)
    pending_logins = shards.first.pump.pending_logins
    pending_logins.add(client)  # as a shard does with each connection
    shards.turn(3)
    assert client in pending_logins
    shards.second.links[0].transport.write(b"\x20\x02\x00\x00")
    assert through.read(4) == b"\x20\x02\x00\x00"
    assert client not in pending_logins


def test_a_lot_comes_back_in_order(shards: Shards, peer: Any) -> None:
    _, through = peer
    through.write(b"CONNECT")
    assert through.read(7) == b"CONNECT"
    for at in range(0, len(BIG), 1 << 16):
        through.write(BIG[at : at + (1 << 16)])
        assert through.read(1 << 16) == BIG[at : at + (1 << 16)]


def test_a_client_that_does_not_read_stops_the_other_shard_not_this_one(shards: Shards, peer: Any) -> None:
    """What waits here is bounded: the other shard's own outbox fills."""
    _, through = peer
    through.write(b"CONNECT")
    assert through.read(7) == b"CONNECT"
    connection = shards.second.links[0].transport
    offered = 0
    while not (connection.blocked and shards.turn(20) is None and connection.blocked):
        connection.write(BIG)
        offered += 1
        shards.turn(20)
    for each in shards.first.pump.connections.values():
        assert sum(len(data) for data, _ in each.unsent()) <= 2 << 20
    assert through.read(offered * len(BIG)) == BIG * offered


def test_a_shard_that_does_not_read_stops_the_client(shards: Shards, peer: Any) -> None:
    _, through = peer
    through.write(b"CONNECT")
    assert through.read(7) == b"CONNECT"
    connection = shards.second.links[0].transport
    connection.pause_reading()
    shards.second.links[0].is_silent = True
    sock = through.under.sock
    sent = 0
    piece = frame(2, BIG[: 1 << 16]) if through.is_framed else BIG[: 1 << 16]
    queue = memoryview(b"")
    idle = 0
    while idle < 20:  # until nobody takes anything any more
        if not queue:
            if hasattr(through.under, "tls"):
                at = 0
                while at < len(piece):
                    at += through.under.tls.write(piece[at:])
                queue = memoryview(through.under.outgoing.read())
            else:
                queue = memoryview(piece)
            sent += 1 << 16
        try:
            queue = queue[sock.send(queue) :]
            idle = 0
        except BlockingIOError:
            idle += 1
            shards.turn()
    for each in shards.first.pump.connections.values():
        assert sum(len(data) for data, _ in each.unsent()) <= 1 << 20
    assert sent > 1 << 17
    connection.resume_reading()
    got = shards.second.links[0].got

    def all_there() -> bool:
        nonlocal queue
        if queue:
            try:
                queue = queue[sock.send(queue) :]
            except BlockingIOError:
                pass
        return len(got) == 7 + sent

    shards.until(all_there)
    assert got[7:] == (BIG[: 1 << 16] * (sent >> 16))


def test_the_end_of_either_side_is_the_others(shards: Shards, peer: Any) -> None:
    _, through = peer
    through.write(b"CONNECT")
    assert through.read(7) == b"CONNECT"
    through.write(b"last words")
    through.under.close()
    shards.until(lambda: shards.second.links[0].lost_why)
    assert shards.second.links[0].got == b"CONNECTlast words"
    shards.until(lambda: not shards.first.pump.connections and not shards.second.pump.connections)


def test_what_a_client_sent_before_it_left_reaches_a_shard_that_is_slow(shards: Shards, peer: Any) -> None:
    _, through = peer
    through.write(b"CONNECT")
    assert through.read(7) == b"CONNECT"
    link = shards.second.links[0]
    link.is_silent = True  # an answer to a client that is gone would be a reset
    link.transport.pause_reading()
    for at in range(0, 1 << 19, 1 << 16):  # more than a socket pair holds
        through.write(BIG[at : at + (1 << 16)])
    shards.turn(5)
    through.under.close()
    shards.turn(20)
    link.transport.resume_reading()
    shards.until(lambda: link.lost_why)
    assert link.got == b"CONNECT" + BIG[: 1 << 19]
    shards.until(lambda: not shards.first.pump.connections and not shards.second.pump.connections)


def test_our_end_is_the_clients(shards: Shards, peer: Any) -> None:
    _, through = peer
    through.write(b"CONNECT")
    assert through.read(7) == b"CONNECT"
    shards.second.links[0].transport.write(b"bye")
    shards.second.links[0].transport.close()
    assert through.read(3) == b"bye"
    if through.is_framed:
        assert Peer(through.under).frame()[0] == 8
    assert through.under.read(1) == b""
    shards.until(lambda: not shards.first.pump.connections and not shards.second.pump.connections)


def test_a_shard_that_dies_takes_its_clients_connections_with_it(shards: Shards, peer: Any) -> None:
    _, through = peer
    through.write(b"CONNECT")
    assert through.read(7) == b"CONNECT"
    for connection in list(shards.second.pump.connections.values()):
        sock = connection.sock
        shards.second.pump.forget(connection)
        sock.close()
    while through.under.read(1):
        pass
    shards.until(lambda: not shards.first.pump.connections)


@pytest.mark.parametrize("cut", [1, 7, 8, 14, 15])
def test_a_websocket_may_move_in_the_middle_of_a_frame(shards: Shards, cut: int) -> None:
    client = Plain(shards, shards.listen(Transports(websocket=WebSocketOptions())))  # type: ignore[arg-type]
    client.write(request())
    peer = Peer(client)
    assert peer.head().startswith("HTTP/1.1 101 ")
    first, second = (
        frame(2, b"CONNECT"),
        frame(2, b"and so on", final=False) + frame(9, b"?") + frame(0, b"!"),
    )
    client.write(first + second[:cut])
    found, pong = peer.content(7), None
    client.write(second[cut:])
    while len(found) < 17 or pong is None:
        opcode, content = peer.frame()
        found, pong = (found + content, pong) if opcode == 2 else (found, content)
    assert (found, pong) == (b"CONNECTand so on!", b"?")
    client.close()
