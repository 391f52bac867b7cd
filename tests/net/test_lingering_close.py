"""A client that is still writing when its connection ends can read why; how long that may take is bounded."""

import contextlib
import select
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rumq.net.connection import Connection
from rumq.net.lingering_close import BYTES_MAX, UNSENT_BYTES_MAX, LingeringClose
from rumq.net.listening.transports import PLAIN, MountOptions, Transports
from rumq.net.pump import Pump
from rumq.net.tls.tls import TlsServer
from rumq.net.websocket.websocket_handshake import WebSocketOptions
from tests.conformance import wire
from tests.net.authorities import Authorities
from tests.net.conftest import Trusting
from tests.net.kernels.test_frames import frame
from tests.net.served import Served
from tests.net.test_pump import Counter, Turns
from tests.net.websocket.test_websocket import request

SECONDS, COUNT = 2.0, 3
LAST_WORDS = b"\xe0\x02\x82\x00"


class Ending(Counter):
    """A link that says its last words to whatever it hears."""

    transport: Connection

    def receive(self, data: Any, pos: int, end: int) -> int:
        self.transport.write(LAST_WORDS)
        self.transport.close()
        return end


class World:
    """A pump and its time."""

    def __init__(self) -> None:
        self.now = 100.0
        self._calls: list[tuple[float, Callable[[], None]]] = []
        self.pump = Pump(Turns())
        self.lingering = self.pump.lingering = LingeringClose(
            self.pump, later=lambda seconds, call: self._calls.append((self.now + seconds, call)),
            seconds_max=SECONDS, count_max=COUNT, clock=lambda: self.now,
        )  # fmt: skip

    def after(self, seconds: float) -> None:
        self.now += seconds
        due, self._calls = (
            [c for c in self._calls if c[0] <= self.now],
            [c for c in self._calls if c[0] > self.now],
        )
        for _, call in due:
            call()
        self.turn()

    def turn(self) -> None:
        self.pump.turn(0.0)

    def client(self) -> socket.socket:
        near, far = socket.socketpair()
        near.setblocking(False)
        far.settimeout(30)
        connection = Connection(self.pump, near, "test", 1 << 20)
        connection.link = link = Ending()  # type: ignore[assignment]
        link.transport = connection
        self.pump.add(connection)
        return far


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.pump.close()


def is_closed(far: socket.socket) -> bool:
    """Whether nobody reads what is sent any more."""
    try:
        far.send(b"x")
    except OSError:
        return True
    return False


def test_what_was_said_last_is_read_behind_the_end_of_what_is_sent(world: World) -> None:
    far = world.client()
    far.send(b"nonsense")
    world.turn()
    assert not world.pump.connections and len(world.lingering) == 1
    far.send(b"and more")
    world.turn()
    assert far.recv(100) == LAST_WORDS and far.recv(100) == b""
    far.close()
    world.turn()
    assert len(world.lingering) == 0


def test_a_client_that_never_closes_has_its_time(world: World) -> None:
    far = world.client()
    far.send(b"nonsense")
    world.turn()
    world.after(SECONDS - 0.1)
    assert not is_closed(far)
    world.after(0.2)
    assert is_closed(far) and len(world.lingering) == 0


def test_a_client_that_never_stops_has_its_bytes_a_piece_a_turn(world: World) -> None:
    far = world.client()
    far.send(b"nonsense")
    world.turn()
    far.setblocking(False)
    turns = 0
    while len(world.lingering):
        with contextlib.suppress(BlockingIOError):
            while True:
                far.send(bytes(1 << 16))
        world.turn()
        turns += 1
        assert turns < 1000
    assert turns >= BYTES_MAX >> 16


def test_there_are_so_many_and_the_oldest_goes(world: World) -> None:
    fars = [world.client() for _ in range(COUNT + 1)]
    for far in fars:
        far.send(b"nonsense")
        world.turn()
    assert len(world.lingering) == COUNT
    assert [is_closed(far) for far in fars] == [True] + [False] * COUNT


def test_nobody_waits_for_a_client_that_has_closed_or_that_was_told_nothing(world: World) -> None:
    far = world.client()
    far.send(b"nonsense")
    far.shutdown(socket.SHUT_WR)
    world.turn()
    world.turn()
    assert len(world.lingering) == 0
    far = world.client()
    (connection,) = world.pump.connections.values()
    connection.close()
    world.turn()
    assert len(world.lingering) == 0 and is_closed(far)


def test_what_a_full_socket_did_not_take_is_sent_first(world: World) -> None:
    far = world.client()
    (connection,) = world.pump.connections.values()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    said = bytes(range(256)) * (UNSENT_BYTES_MAX // 256)
    connection.write(said)
    connection.write(LAST_WORDS)
    connection.close()
    world.turn()
    heard = b""
    while select.select([far], [], [], 0)[0] and (more := far.recv(1 << 16)):
        heard += more
        world.turn()
    assert heard == said + LAST_WORDS


def test_a_layer_that_fails_to_say_its_last_words_is_closed(world: World) -> None:
    class Failing:
        closed = False

        def fileno(self) -> int:
            return far.fileno()

        def push(self) -> bool:
            raise ValueError("a bug")

        def close(self) -> None:
            self.closed = True

    far = world.client()
    stream = Failing()
    world.lingering.add(stream, [])
    assert stream.closed and len(world.lingering) == 0


# Through a listener


@pytest.fixture(scope="module")
def served(authorities: Authorities) -> Iterator[Served]:
    tls = TlsServer(authorities.mutual(client_certificates="none", cafile=""))
    made = Served(
        tcp=PLAIN, tls=Transports(tls=tls), ws=Transports(websocket=WebSocketOptions()),
        wss=Transports(tls=tls, websocket=WebSocketOptions()), mount=Transports(mount=MountOptions("a/", 1 << 20)),
    )  # fmt: skip
    yield made
    made.end()


@pytest.mark.parametrize("kind", ["tcp", "tls", "ws", "wss", "mount"])
@pytest.mark.parametrize("behind", [0, 1 << 10, 2 << 20])
def test_a_client_that_goes_on_writing_reads_its_disconnect(
    served: Served, trusting: Trusting, kind: str, behind: int
) -> None:
    sock: Any = socket.create_connection(("127.0.0.1", served.ports[kind]), timeout=30)
    if kind in ("tls", "wss"):
        sock = trusting().wrap_socket(sock, server_hostname="localhost")
    is_websocket = kind in ("ws", "wss")
    cover = (lambda data: frame(2, data)) if is_websocket else (lambda data: data)
    with sock:
        if is_websocket:
            sock.sendall(request())
            assert b"101 Switching" in sock.recv(4096)
        sock.sendall(cover(wire.connect("c", 5)))
        assert sock.recv(4096)
        # A reserved packet type, and all that the client had to say before it looks at what it is told.
        sock.sendall(cover(b"\x00\x00"))
        for _ in range(behind >> 16 or 1):
            sock.sendall(cover(bytes(min(behind, 1 << 16))))
        heard = b""
        with contextlib.suppress(ssl.SSLEOFError):
            while more := sock.recv(4096):
                heard += more
        assert b"\xe0" in heard and b"\x81" in heard, heard
