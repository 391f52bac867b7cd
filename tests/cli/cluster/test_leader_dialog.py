"""An order to a leader on another node, which a thread of the test plays."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rumq.cli.cluster.leader_dialog import leader_elsewhere, order_leader
from rumq.cluster.agent.messages import Done, Order
from rumq.cluster.connections.leaders import Leader
from rumq.cluster.control.records import Versioned, View
from rumq.cluster.links.frames import FrameReader, encoded
from rumq.cluster.links.greeting import Greeting, Refused
from tests.cluster.node.world import node_record, record

ORDER = Order(7, "hand-over", 0, to="n3#3")
VIEW = View(
    cluster="c", node="n1#1", replicas=3, nodes=[node_record("n1#1"), node_record("n2#2", 8000)],
    shards=[Versioned(record("n1#1", "n2#2", leader="n2#2", epoch=4), 1), Versioned(record("n1#1", leader="n1#1"), 1)],
    is_current=True,
)  # fmt: skip


def answered(serve: Callable[[socket.socket], None], seconds_max: float = 30.0) -> tuple[Done, list[Any]]:
    """The outcome, and what the leader heard."""
    heard: list[Any] = []

    def run() -> None:
        sock, _ = listener.accept()
        with sock:
            reader: FrameReader[Any] = FrameReader(Greeting | Order)
            while len(heard) < 2:
                heard.extend(message for message, _ in reader.feed(sock.recv(1 << 16)))
            serve(sock)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        leader = Leader(0, 4, "n2#2", *listener.getsockname(), False)
        done = order_leader(VIEW, leader, ORDER, seconds_max)
        thread.join(30)
    return done, heard


def test_only_a_leader_on_another_node_is_asked_there() -> None:
    leader = leader_elsewhere(VIEW, 0)
    assert leader is not None and (leader.node, leader.port, leader.epoch) == ("n2#2", 8000, 4)
    assert leader_elsewhere(VIEW, 1) is None


def test_the_leader_is_greeted_and_its_answer_is_waited_for() -> None:
    done, heard = answered(lambda sock: sock.sendall(encoded(Done(7))))
    assert done == Done(7)
    assert heard == [Greeting("ask", "c", "n1#1", 0, 4), ORDER]


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (encoded(Refused("this is shard 2")), "refused: this is shard 2"),
        (b"", "ended before it answered: see the status"),
        (b"HTTP/1.1 400 no\r\n\r\n", "cannot be asked: a frame of"),
    ],
)
def test_what_is_no_answer_is_said_with_the_leaders_address(say: bytes, why: str) -> None:
    done, _ = answered(lambda sock: sock.sendall(say))
    assert done.request == 7 and why in done.why and done.why.startswith("n2#2 at 127.0.0.1:")


def test_a_leader_that_does_not_answer_in_time_may_still_do_it() -> None:
    ended = threading.Event()

    def serve(sock: socket.socket) -> None:
        sock.recv(1)  # until the other end gives up
        ended.set()

    done, _ = answered(serve, 0.05)
    assert "may still be carried out" in done.why and ended.is_set()


def test_a_leader_that_is_gone_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    done = order_leader(VIEW, Leader(0, 4, "n2#2", *address, False), ORDER, 1.0)
    assert "cannot be asked" in done.why
