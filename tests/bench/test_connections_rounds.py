"""Connections that ping and connections that come: each is answered, and timed from when it was due."""

import select
import socket
import threading
from array import array
from collections.abc import Iterator

import pytest

from bench.connections import BenchFault
from bench.load.connecting import Connecting
from bench.load.load import Load, Round
from bench.load.pinging import Pinging

PINGS = Load(publishers=3, subscribers=0, rate=3_000)
ALL = Round(number=1, messages=7, seconds_max=20.0, lead=0)


def answering(connection: socket.socket, size: int, answer: bytes) -> None:
    """Answer each `size` bytes until the other end closes."""
    while len(data := connection.recv(size, socket.MSG_WAITALL)) == size:
        del data
        connection.sendall(answer)


def pinging(answer: bytes) -> tuple[Pinging, list[socket.socket]]:
    pairs = [socket.socketpair() for _ in range(PINGS.publishers)]
    epoll = select.epoll()
    for ours, theirs in pairs:
        epoll.register(ours, select.EPOLLIN)
        threading.Thread(target=answering, args=(theirs, 2, answer), daemon=True).start()
    ours = [one for one, _ in pairs]
    return Pinging(ours, PINGS, epoll), ours


def test_each_ping_is_sent_in_turn_and_answered() -> None:
    pings, connections = pinging(b"\xd0\x00")
    report = pings.run_round(ALL)
    assert (report.sent, report.unacknowledged) == (7, 0)
    assert len(array("Q", report.acknowledged_ns)) == len(array("Q", report.late_ns)) == 7
    for one in connections:
        one.close()


def test_another_answer_to_a_ping_is_a_fault() -> None:
    pings, _ = pinging(b"\x40\x02")
    with pytest.raises(BenchFault, match="40 02"):
        pings.run_round(ALL)


@pytest.fixture
def greeted() -> Iterator[tuple[str, int]]:
    """Where every CONNECT is answered by a CONNACK."""
    listener = socket.create_server(("127.0.0.1", 0))

    def welcome() -> None:
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            connection.recv(1000)
            connection.sendall(b"\x20\x02\x00\x00")
            kept.append(connection)

    kept: list[socket.socket] = []
    threading.Thread(target=welcome, daemon=True).start()
    yield listener.getsockname()
    listener.close()


def test_connections_come_at_their_rate_and_stay(greeted: tuple[str, int]) -> None:
    load = Load(publishers=7, subscribers=0, rate=1_000)
    connecting = Connecting(greeted, load, "test", select.epoll())
    report = connecting.run_round(ALL)
    assert (report.sent, report.unacknowledged) == (7, 0)
    assert len(array("Q", report.acknowledged_ns)) == 7
    # Message k is due at k ms: the last one was not sent before that.
    assert report.ended_ns - report.started_ns >= 6_000_000
    assert all(one.fileno() >= 0 for one in connecting.connections)
