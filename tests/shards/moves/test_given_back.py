"""A connection that reached a standby goes back to the edge as it came."""

import socket

import pytest

from rumq.net.sockets.fd_passing import DATAGRAM_BYTES_MAX, FdPassing, make_shard_sockets
from rumq.shards.moves.given_back import GivenBack

EDGE = 2


@pytest.mark.parametrize("kind", ["client", "known"])
@pytest.mark.parametrize("data", [b"CONNECT", b"long" * DATAGRAM_BYTES_MAX])
def test_it_goes_back_whole(kind: str, data: bytes) -> None:
    doors = make_shard_sockets(3)
    edge, standby = (FdPassing(doors, index, lambda seconds, call: None) for index in (EDGE, 0))
    back: list[tuple[socket.socket, str, bytes, int]] = []
    edge.takers[kind] = lambda sock, peer, data, listener: back.append((sock, peer, data, listener))
    given = GivenBack(standby, EDGE)
    client, server = socket.socketpair()
    edge.give(0, kind, server.detach(), "203.0.113.7:1", data, 3)
    for _ in range(20):  # a door holds a few datagrams
        edge.flush()
        given.give_back()
        edge.hear()
    ((sock, *rest),) = back
    assert rest == ["203.0.113.7:1", data, 3]
    client.send(b"more")
    assert sock.recv(9) == b"more"
    for each in (client, sock, *(end for door in doors for end in door)):
        each.close()
