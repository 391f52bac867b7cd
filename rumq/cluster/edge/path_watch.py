"""Paths from an edge to leaders that take nothing any more, while etcd and other nodes still see both ends.

A relayed client would wait for as long as TCP repeats itself. Its connection is ended instead, so that it goes to
another node. A leader that is slow, paused or does not read is another case: its kernel acknowledges. tcp(7)"""

from __future__ import annotations

import socket
from collections.abc import Iterable

LOOK_SECONDS = 0.5
RETRANSMISSIONS_MAX = 3  # of one packet, without an answer: 1.4 s at least
TCPI_RETRANSMITS = 2  # the byte of `struct tcp_info`


def retransmissions(sock: socket.socket) -> int:
    """How often the oldest packet was sent in vain; 0 for what is no TCP connection."""
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[TCPI_RETRANSMITS]
    except OSError:
        return 0


def is_cut(socks: Iterable[socket.socket]) -> bool:
    """Whether a path is cut, by all connections over it. Cost: a system call for each"""
    return any(retransmissions(sock) >= RETRANSMISSIONS_MAX for sock in socks)
