"""Descriptors between shards: what was read of a connection comes with it, in order, however much it is."""

import os
import socket

import pytest

from rumq.net.sockets.fd_passing import DATAGRAM_BYTES_MAX, FdPassing, make_shard_sockets


class World:
    def __init__(self) -> None:
        self.sockets = make_shard_sockets(2)
        self.retries = 0
        self.failed: list[str] = []
        self.shards = [FdPassing(self.sockets, index, self._later, self.failed.append) for index in range(2)]
        self.taken: list[tuple[socket.socket, str, bytes, int]] = []
        self.shards[1].takers["client"] = lambda *what: self.taken.append(what)

    def _later(self, seconds: float, call: object) -> None:
        self.retries += 1

    def close(self) -> None:
        for each in self.sockets:
            each.inside.close()
            each.outside.close()
        for sock, *_ in self.taken:
            sock.close()


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("size", [0, 10, DATAGRAM_BYTES_MAX + 1000])
def test_a_connection_arrives_with_what_was_read_of_it(world: World, size: int) -> None:
    ours, theirs = socket.socketpair()
    data = os.urandom(size)
    world.shards[0].give(1, "client", theirs.detach(), "10.0.0.1:5", data, listener=3)
    world.shards[0].flush()
    world.shards[1].hear()
    ((sock, peer, read, listener),) = world.taken
    assert (peer, read, listener) == ("10.0.0.1:5", data, 3)
    ours.send(b"x")
    assert sock.recv(1) == b"x"
    ours.close()
    world.close()


def test_many_connections_go_in_order(world: World) -> None:
    ours, theirs = socket.socketpair()
    for number in range(300):
        world.shards[0].give(1, "client", os.dup(ours.fileno()), str(number))
    world.shards[0].flush()
    world.shards[1].hear()
    assert [int(peer) for _, peer, _, _ in world.taken] == list(range(300))
    ours.close()
    theirs.close()
    world.close()


def test_a_fault_with_one_connection_is_reported_and_the_others_are_taken(world: World) -> None:
    ours, theirs = socket.socketpair()
    world.shards[0].give(1, "nobody takes these", os.dup(ours.fileno()))
    world.shards[0].give(1, "client", theirs.detach())
    world.shards[0].flush()
    world.shards[1].hear()
    assert len(world.failed) == 1 and len(world.taken) == 1
    ours.close()
    world.close()
