"""The outbox of a connection: a plain socket is sent to by descriptor, what only looks like one by its methods."""

import socket
from collections.abc import Iterator
from errno import EAGAIN, EIO, EPIPE
from typing import Any

import pytest

from rumq.net.connection import Connection, ConnectionOwner, send_by
from rumq.net.kernels.sockets import BUFFERS_MAX
from tests.net.socket_bytes import everything

Pair = tuple[socket.socket, socket.socket]


class OfOurs(socket.socket):
    """Not one of the system: what is sent by its methods is seen. failure: raised by each of them"""

    calls: tuple[str, ...] = ()
    failure: OSError | None = None

    def _called(self, name: str) -> None:
        self.calls = (*self.calls, name)
        if self.failure is not None:
            raise self.failure

    def send(self, *args: Any) -> int:
        self._called("send")
        return super().send(*args)

    def sendmsg(self, *args: Any) -> int:
        self._called("sendmsg")
        return super().sendmsg(*args)


class Owner(ConnectionOwner):
    """In place of the pump. told: what connections told it"""

    def __init__(self) -> None:
        self.dirty: list[Connection] = []
        self.told: list[str] = []

    def drop(self, connection: Connection, *, lingers: bool = False) -> None:
        self.told.append("drop")

    def forget(self, connection: Connection) -> None:
        self.told.append("forget")

    def resume(self, connection: Connection) -> None:
        self.told.append("resume")

    def drained(self, connection: Connection) -> None:
        self.told.append("drained")

    def stop_writing(self, connection: Connection, why: str) -> None:
        self.told.append(why)


@pytest.fixture(params=[False, True], ids=["of the system", "of ours"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    near, far = socket.socketpair()
    if request.param:
        near = OfOurs(fileno=near.detach())
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield near, far


@pytest.fixture
def ours() -> Iterator[tuple[OfOurs, socket.socket]]:
    near, far = socket.socketpair()
    with OfOurs(fileno=near.detach()) as made, far:
        made.setblocking(False)
        far.setblocking(False)
        yield made, far


def connected(sock: socket.socket, outbox_bytes_max: int = 1 << 16) -> tuple[Connection, Owner]:
    owner = Owner()
    return Connection(owner, sock, "test", outbox_bytes_max), owner


def test_only_a_socket_of_the_system_is_plain(ours: tuple[OfOurs, socket.socket]) -> None:
    """Of any other its bytes are not what the descriptor carries: they may be encrypted."""
    near, far = ours
    assert connected(far)[0].is_plain and not connected(near)[0].is_plain
    assert connected(far)[0].fd == far.fileno()


def test_by_descriptor_no_method_of_a_socket_is_called_and_by_method_one(
    ours: tuple[OfOurs, socket.socket],
) -> None:
    near, far = ours
    connection, _ = connected(near)
    connection.write(b"a")
    connection.flush()
    connection.write(b"b")
    connection.write(b"c")
    connection.flush()
    assert near.calls == ("send", "sendmsg") and everything(far) == b"abc"
    connection.is_plain = True
    connection.write(b"d")
    connection.flush()
    assert near.calls == ("send", "sendmsg") and everything(far) == b"d"


@pytest.mark.parametrize("count", [1, 2, BUFFERS_MAX, BUFFERS_MAX + 1, 3 * BUFFERS_MAX])
def test_all_that_was_written_leaves_in_order_at_one_flush(pair: Pair, count: int) -> None:
    near, far = pair
    connection, owner = connected(near)
    kinds: list[Any] = [bytes, bytearray, lambda data: memoryview(data)]
    pieces = [kinds[n % 3](b"%d," % n) for n in range(count)]
    for piece in pieces:
        connection.write(piece)
    size = sum(map(len, pieces))
    assert owner.dirty == [connection] and connection.room == (1 << 16) - size
    connection.flush()
    assert everything(far) == b"".join(pieces)
    assert not connection.waits() and not connection.blocked
    assert (connection.room, connection.bytes_out, owner.told) == (1 << 16, size, [])


def test_a_full_socket_leaves_the_rest_in_the_outbox_until_it_is_writable(pair: Pair) -> None:
    near, far = pair
    connection, owner = connected(near, 1 << 23)
    first, data = b"begin", bytes(range(256)) * (1 << 14)
    connection.write(first)
    connection.write(data)
    connection.flush()
    assert connection.blocked and connection.waits() and owner.told == []
    assert connection.room == (1 << 23) - (len(first) + len(data) - connection.bytes_out)
    found = everything(far)
    assert len(found) == connection.bytes_out > len(first)
    while connection.waits():
        connection.writable()
        found += everything(far)
    assert found == first + data and connection.room == 1 << 23
    assert owner.told == ["drained"]


def test_a_socket_that_takes_nothing_is_asked_again_when_it_is_writable(pair: Pair) -> None:
    near, far = pair
    while send_by(near, [(bytes(1 << 16), None)]) > 0:
        pass
    connection, owner = connected(near)
    connection.write(b"later")
    connection.flush()
    assert connection.blocked and (connection.bytes_out, owner.told) == (0, [])
    everything(far)
    connection.writable()
    assert everything(far) == b"later" and not connection.waits()


def test_a_failure_stops_writing_and_is_told_in_words(pair: Pair) -> None:
    near, far = pair
    connection, owner = connected(near)
    far.close()
    connection.write(b"a")
    connection.write(b"b")
    connection.flush()
    assert owner.told == ["Broken pipe"]


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize(
    ("failure", "number"),
    [
        (BlockingIOError(EAGAIN, "full"), EAGAIN),
        (BlockingIOError(), EAGAIN),  # of TLS and WebSocket, which have no number for it
        (BrokenPipeError(EPIPE, "gone"), EPIPE),
        (OSError("no number"), EIO),
    ],
)
def test_failures_of_what_looks_like_a_socket_are_numbers(
    ours: tuple[OfOurs, socket.socket], failure: OSError, number: int, pieces: int
) -> None:
    near, _ = ours
    near.failure = failure
    assert send_by(near, [(b"x", None)] * pieces) == -number


def test_what_looks_like_a_socket_says_how_much_it_took(ours: tuple[OfOurs, socket.socket]) -> None:
    near, far = ours
    assert send_by(near, [(b"abc", None)]) == 3
    assert send_by(near, [(b"abc", None), (memoryview(b"de"), None)]) == 5
    assert everything(far) == b"abcabcde"


def test_of_a_socket_that_only_the_pump_serves_the_descriptor_is_kept(pair: Pair) -> None:
    near, far = pair
    connection = Connection(Owner(), socket.socket(fileno=near.detach()), "peer", 1 << 20)
    fd = connection.fd
    connection.keep_descriptor()
    connection.keep_descriptor()
    connection.write(b"abc")
    connection.flush()
    assert far.recv(10) == b"abc" and connection.fd == fd, "it is still open"
    asked = connection.sock
    assert asked.fileno() == fd and asked is connection.sock and asked.family == far.family
    asked.close()
    assert far.recv(1) == b"", "who closes it closes the connection"


def test_such_a_socket_is_handed_over_like_any_other(pair: Pair) -> None:
    near, far = pair
    connection = Connection(Owner(), socket.socket(fileno=near.detach()), "peer", 1 << 20)
    connection.keep_descriptor()
    with socket.socket(fileno=connection.hand_over()) as given:
        given.send(b"x")
    assert far.recv(1) == b"x"
