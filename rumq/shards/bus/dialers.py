"""How links to other shards are made: over socket pairs within a node; between nodes `rumq.shards.links.cluster_links`.

Of each two shards the one of higher index dials."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Protocol

from rumq.net.sockets.fd_passing import FdPassing

Attach = Callable[[int, socket.socket, bytes], None]
"""Takes a link to a shard: its index, the socket, and bytes of it that were read already."""


class Dialer(Protocol):
    def begin(self, attach: Attach, end: Callable[[int], None]) -> None:
        """Once. attach: takes each link, dialled or accepted; end: ends the link to what is that shard no more"""

    def dial(self, shard: int) -> None:
        """Make a link to a shard, now or as soon as it is there."""


class PairDialer:
    """Gives the other shard one end of a socket pair. index: of this shard"""

    def __init__(self, doors: FdPassing, index: int) -> None:
        self._doors, self._index = doors, index
        self._attach: Attach

    def begin(self, attach: Attach, end: Callable[[int], None]) -> None:
        self._attach = attach
        self._doors.takers["bus"] = lambda sock, peer, data, _: attach(int(peer), sock, data)

    def dial(self, shard: int) -> None:
        ours, theirs = self._doors.pair()
        self._doors.give(shard, "bus", theirs.detach(), str(self._index))
        self._attach(shard, ours, b"")
