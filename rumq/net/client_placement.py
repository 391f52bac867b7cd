"""The home shard of a client, determined by its client id.

A connection accepted elsewhere is handed over, so that a client id has one session, in one shard.
docs/decisions/0008-clients-live-where-their-id-leads.md"""
# compiled: warm

from __future__ import annotations

from typing import Any
from zlib import crc32

from rumq.net.sockets.fd_passing import FdPassing


def home_of(client_id: str, count: int) -> int:
    return crc32(client_id.encode()) % count


class ClientPlacement:
    """The `Placement` of a shard."""

    def __init__(self, doors: FdPassing | None, index: int, count: int, edge_door: int | None = None) -> None:
        """edge_door: in a cluster, of the process that knows where each shard is led"""
        self._doors, self.index, self._count, self._edge_door = doors, index, count, edge_door

    def home(self, client_id: str) -> int:
        return home_of(client_id, self._count)

    def is_here(self, client_id: str) -> bool:
        return self._count == 1 or self.home(client_id) == self.index

    def hand_over(self, connection: Any, listener: int, client_id: str, data: bytes) -> bool:
        """Hand a connection to its client's shard, with what was read of it; False if that is this one.

        listener: the number of the one that it came in through"""
        if self._doors is None or self.is_here(client_id):
            return False
        state = connection.handover_state()
        kind = "known" if state else "client"
        door = self.home(client_id) if self._edge_door is None else self._edge_door
        self._doors.give(door, kind, connection.hand_over(), connection.peer, state + data, listener)
        return True
