"""The pump serves everybody a piece a turn, however fast one of them sends."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.net.turn_handler import TurnHandler

READ_BYTES = 1 << 16  # less than a socket pair holds
PIECE = 1 << 16  # of one that floods, beside others


class Turns(TurnHandler):
    """Nobody's house: what links take is only counted."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.now = 100.0

    def begin_turn(self) -> float:
        return self.now

    def end_turn(self) -> None:
        self.ended.append("busy")

    def end_quiet_turn(self) -> None:
        self.ended.append("quiet")

    def drained(self, connection: Connection) -> None: ...
    def crashed(self, connection: Connection) -> None:
        raise AssertionError

    def seconds_to_next_deadline(self) -> float:
        return 0.0


class Counter:
    is_bus = False

    def __init__(self) -> None:
        self.pieces: list[int] = []
        self.lost_why: list[str] = []

    def receive(self, data: Any, pos: int, end: int) -> int:
        self.pieces.append(end - pos)
        return end

    def lost(self, why: str) -> None:
        self.lost_why.append(why)


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def pump(turns: Turns) -> Iterator[Pump]:
    pump = Pump(turns, read_bytes=READ_BYTES)
    yield pump
    pump.close()


class Layer(socket.socket):
    """As of TLS: the pump calls its methods, not the system."""


def connected(pump: Pump, *, layered: bool = False) -> tuple[socket.socket, Counter]:
    near, far = socket.socketpair()
    if layered:
        near = Layer(fileno=near.detach())
    far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 19)
    near.setblocking(False)
    far.setblocking(False)
    connection = Connection(pump, near, "test", 1 << 16)
    connection.link = link = Counter()  # type: ignore[assignment]
    pump.add(connection)
    return far, link


def flood(far: socket.socket) -> None:
    """As much as the socket takes."""
    with contextlib.suppress(BlockingIOError):
        while True:
            far.send(bytes(1 << 16))


def test_one_that_floods_has_one_piece_a_turn(pump: Pump) -> None:
    far, link = connected(pump)
    for _ in range(50):
        flood(far)
        before = len(link.pieces)
        pump.turn(0.0)
        assert len(link.pieces) - before <= 1
    assert link.pieces == [READ_BYTES] * 50
    far.close()


def test_what_was_sent_before_the_end_is_taken_and_the_end_is_noticed(pump: Pump) -> None:
    far, link = connected(pump)
    sent = 0
    for _ in range(5):
        with contextlib.suppress(BlockingIOError):
            while True:
                sent += far.send(bytes(1 << 16))
        pump.turn(0.0)
    far.close()
    for _ in range(20):
        pump.turn(0.0)
    assert sum(link.pieces) == sent
    assert len(link.lost_why) == 1


class Pinged(Counter):
    """Answers b"p", which changes nothing else."""

    connection: Connection

    def receive(self, data: Any, pos: int, end: int) -> int:
        self.connection.is_quiet = data[pos:end] == b"p"
        return super().receive(data, pos, end)


def test_a_turn_is_quiet_if_all_that_came_is(pump: Pump, turns: Turns) -> None:
    ends = []
    for _ in range(2):
        far, link = connected(pump)
        connection = next(each for each in pump.connections.values() if each.link is link)
        connection.link = pinged = Pinged()  # type: ignore[assignment]
        pinged.connection = connection
        ends.append(far)
    pump.turn(0.0)  # both are writable
    for said in ((b"p", b""), (b"p", b"p"), (b"p", b"x"), (b"x", b"p"), (b"", b"p")):
        turns.ended.clear()
        for far, data in zip(ends, said, strict=True):
            far.send(data)
        pump.turn(0.0)
        assert turns.ended == ["busy" if b"x" in said else "quiet"], said
    ends[0].close()
    pump.turn(0.0)
    assert turns.ended[-1] == "busy"
    ends[1].close()


def test_a_watched_descriptor_makes_a_turn_busy(pump: Pump, turns: Turns) -> None:
    near, far = socket.socketpair()
    pump.watch(near.fileno(), lambda: None)
    far.send(b"!")
    pump.turn(0.0)
    assert turns.ended == ["busy"]
    pump.unwatch(near.fileno())
    near.close()
    far.close()


def test_others_are_served_while_one_floods(pump: Pump) -> None:
    far, _ = connected(pump)
    quiet, link = connected(pump)
    for turn in range(20):
        flood(far)
        quiet.send(b"x")
        pump.turn(0.0)
        assert len(link.pieces) == turn + 1
    far.close()
    quiet.close()


@pytest.mark.parametrize("layered", [False, True])
def test_one_that_floods_has_small_pieces_while_others_are_served(turns: Turns, layered: bool) -> None:
    """A turn in which somebody sends a little is short; a flood alone is read in large pieces."""
    pump = Pump(turns, read_bytes=2 * PIECE)
    far, link = connected(pump)
    quiet, _ = connected(pump, layered=layered)

    def piece() -> int:
        flood(far)
        pump.turn(0.0)
        return link.pieces[-1]

    assert [piece() for _ in range(3)] == [2 * PIECE] * 3
    quiet.send(b"x")
    assert piece() == 2 * PIECE, "until that was seen"
    assert piece() == PIECE
    turns.now += 0.04
    quiet.send(b"x")
    assert [piece(), piece()] == [PIECE, PIECE]
    turns.now += 0.04
    assert piece() == PIECE
    turns.now += 0.011
    assert [piece(), piece()] == [2 * PIECE] * 2, "for 50 ms after the last of them"
    far.close()
    quiet.close()
    pump.close()


def test_other_shards_are_no_others(turns: Turns) -> None:
    """They send a little all the time."""
    pump = Pump(turns, read_bytes=2 * PIECE)
    far, link = connected(pump)
    shard, beside = connected(pump)
    beside.is_bus = True
    for _ in range(3):
        flood(far)
        shard.send(b"x")
        pump.turn(0.0)
    assert link.pieces == [2 * PIECE] * 3
    far.close()
    shard.close()
    pump.close()


def test_one_that_sent_less_once_is_no_other(turns: Turns) -> None:
    pump = Pump(turns, read_bytes=2 * PIECE)
    far, link = connected(pump)
    for size in (2 * PIECE, 10, 2 * PIECE):
        far.send(bytes(size))
        for _ in range(4):
            pump.turn(0.0)
    assert link.pieces == [2 * PIECE, 10, 2 * PIECE]
    far.close()
    pump.close()


def test_what_was_said_before_nothing_could_be_sent_is_taken(pump: Pump) -> None:
    """A DISCONNECT that has arrived counts, though the client is gone when it is sent something."""
    far, link = connected(pump)
    far.send(b"goodbye")
    far.close()
    (connection,) = pump.connections.values()
    connection.write(b"news")
    connection.flush()
    assert (link.pieces, link.lost_why) == ([], [])
    pump.turn(0.0)
    pump.turn(0.0)
    assert link.pieces == [len(b"goodbye")]
    assert len(link.lost_why) == 1
    assert not pump.connections


def test_what_is_written_to_a_dropped_connection_goes_to_nobody(pump: Pump) -> None:
    """Its descriptor may be the next client's."""
    near, far = socket.socketpair()
    near.setblocking(False)
    connection = Connection(pump, near, "test", 1 << 16)
    connection.link = Counter()  # type: ignore[assignment]
    pump.add(connection)
    number = connection.fd
    pump.drop(connection)
    others = [end for _ in range(4) for end in socket.socketpair()]
    assert number in [end.fileno() for end in others]
    connection.write(b"not for you")
    pump.turn(0.0)
    for end in [far, *others]:
        end.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            assert end.recv(100) == b""
        end.close()
