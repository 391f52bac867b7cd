"""Connections that were handed to a process which does not lead its shard (any more): they go back to the edge.

The edge places them again by the view that it has then. So a standby gives back at its leisure, not at once: the two
must not pass a connection to and fro until the view changes."""

from __future__ import annotations

import socket
from functools import partial

from rumq.cluster.links.client_moves import MOVED
from rumq.net.connection_handover import CLIENT, KNOWN
from rumq.net.sockets.fd_passing import FdPassing


class GivenBack:
    """doors: of the standby's shard; edge_door: number of the edge's"""

    def __init__(self, doors: FdPassing, edge_door: int) -> None:
        self._doors, self._edge_door = doors, edge_door
        for kind in (CLIENT, KNOWN, MOVED):
            doors.takers[kind] = partial(self._give_back, kind)

    def give_back(self) -> None:
        """What has come since the last call."""
        self._doors.hear()
        self._doors.flush()

    def _give_back(self, kind: str, sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
        self._doors.give(self._edge_door, kind, sock.detach(), peer, data, listener)
