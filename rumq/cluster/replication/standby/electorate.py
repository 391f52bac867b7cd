"""Whose promises a claimant needs, and above which epoch it claims, as replicas tell it. Sans-IO. R2"""

from __future__ import annotations

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication.messages import Members
from rumq.cluster.replication.ports import ReplicaState
from rumq.cluster.replication.quorum import maybe_members, newest


class Electorate:
    """members: of the record, or what replicas have noted since; None before the first attempt

    floor: the highest epoch that a peer has promised"""

    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        self.members: Members | None = None
        self.floor = 0
        self._told: Members | None = None  # the newest configuration that a peer has noted

    def begin(self, record: ShardRecord) -> Members:
        """Those of an attempt that begins with this record."""
        self.members = newest(record, [maybe_members(self._state.voters), self._told])
        return self.members

    def learn(self, members: Members | None, record: ShardRecord) -> bool:
        """A peer has noted this configuration. returns: whether another one than the chosen one counts now"""
        if members is None:
            return False
        if self._told is None or (members.opened, members.config) > (self._told.opened, self._told.config):
            self._told = members
        before, now = self.members, self.begin(record)
        assert before is not None
        return (before.replicas, before.old_replicas) != (now.replicas, now.old_replicas)

    def promised(self, epoch: int) -> None:
        """A peer has promised this epoch."""
        self.floor = max(self.floor, epoch)

    def others(self, node: str) -> list[str]:
        """Whose votes count, besides a node."""
        assert self.members is not None
        return [each for each in self.members.voters if each != node]
