"""How links to other shards are made: over socket pairs within a node; between nodes `rumq.shards.links.cluster_links`.

Of each two shards the one of higher index dials."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Protocol

from rumq.net.sockets.fd_passing import FdPassing
from rumq.shards.bus.shared_ring import INLINE_BYTES_MAX, SharedRing


class LinkTaker(Protocol):
    def __call__(self, shard: int, sock: socket.socket, rest: bytes, ring: SharedRing | None = None, /) -> None:
        """Take a link to a shard. rest: bytes of the socket that were read already; ring: its, for long messages"""


class Dialer(Protocol):
    def begin(self, attach: LinkTaker, end: Callable[[int], None]) -> None:
        """Once. attach: takes each link, dialled or accepted; end: ends the link to what is that shard no more"""

    def dial(self, shard: int) -> None:
        """Make a link to a shard, now or as soon as it is there."""


class PairDialer:
    """Gives the other shard one end of a socket pair, and before it the descriptor of a ring.

    Whether both have the same ring is for `Hello`: the one who gave it may have died before it gave the socket."""

    def __init__(
        self, doors: FdPassing, index: int, ring_bytes: int = 0, inline_bytes_max: int = INLINE_BYTES_MAX
    ) -> None:
        """index: of this shard; ring_bytes: of a direction, 0: no ring; inline_bytes_max: what goes over the socket"""
        self._doors, self._index = doors, index
        self._ring_bytes, self._inline_bytes_max = ring_bytes, inline_bytes_max
        self._rings: dict[int, SharedRing | None] = {}  # by shard: one that came, until its socket does
        self._attach: LinkTaker

    def begin(self, attach: LinkTaker, end: Callable[[int], None]) -> None:
        self._attach = attach
        self._doors.descriptor_takers["ring"] = self._take_ring
        self._doors.takers["bus"] = self._take_socket

    def dial(self, shard: int) -> None:
        ours, theirs = self._doors.pair()
        made = SharedRing.make(self._ring_bytes, self._inline_bytes_max)
        if made is not None:
            self._doors.give(shard, "ring", made[1], str(self._index))
        self._doors.give(shard, "bus", theirs.detach(), str(self._index))
        self._attach(shard, ours, b"", made[0] if made is not None else None)

    def _take_ring(self, fd: int, peer: str) -> None:
        self._rings[int(peer)] = SharedRing.accept(fd)

    def _take_socket(self, sock: socket.socket, peer: str, data: bytes, _: int) -> None:
        self._attach(int(peer), sock, data, self._rings.pop(int(peer), None))
