"""Links within a node: each end of a socket pair in a process of its own."""

import socket

from rumq.net.sockets.fd_passing import FdPassing, make_shard_sockets
from rumq.shards.bus.dialers import PairDialer


def test_both_ends_of_a_pair_are_attached_where_they_belong() -> None:
    doors = make_shard_sockets(2)
    attached: list[tuple[int, int, socket.socket, bytes]] = []
    passings = [FdPassing(doors, index, lambda seconds, call: None) for index in range(2)]
    dialers = [PairDialer(passing, index) for index, passing in enumerate(passings)]
    for index, dialer in enumerate(dialers):

        def attach(shard: int, sock: socket.socket, rest: bytes, index: int = index) -> None:
            attached.append((index, shard, sock, rest))

        dialer.begin(attach, lambda shard: None)
    dialers[1].dial(0)
    passings[1].flush()
    passings[0].hear()
    (near, far) = attached
    assert near[:2] == (1, 0) and far[:2] == (0, 1)
    near[2].send(b"hello")
    assert far[2].recv(9) == b"hello"
    for sock in (near[2], far[2], *(end for door in doors for end in door)):
        sock.close()
