"""The other shards' part of a turn: what they wait for is sent at its end."""

from __future__ import annotations

from rumq.shards.bus.interest import Interest
from rumq.shards.bus.peers import Peers
from rumq.shards.bus.shared_groups import SharedGroups
from rumq.shards.processes.fd_passing import FdPassing


class PeerStage:
    def __init__(self, peers: Peers, interest: Interest, groups: SharedGroups, fd_passing: FdPassing) -> None:
        self._peers, self._groups, self._fd_passing = peers, groups, fd_passing
        self.changes = interest.changes

    def end_turn(self) -> None:
        self._groups.end_turn()
        self._peers.end_turn()
        self._fd_passing.flush()
