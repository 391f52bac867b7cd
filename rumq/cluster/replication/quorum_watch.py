"""Whether enough replicas answer a leader: the operator is told when they do not. Sans-IO.

docs/explanation/replication.md."""

from __future__ import annotations

from collections.abc import Mapping

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication.follower import FollowerProgress
from rumq.cluster.replication.quorum import has_quorum

QUORUM_SECONDS = 2.0  # without an answer of a majority, until the operator is told


class QuorumWatch:
    """has_quorum: enough of them answer"""

    def __init__(self, node: str, copies_wanted: int) -> None:
        """node: of the leader; copies_wanted: a majority of the copies that the cluster is to have"""
        self._node, self._copies_wanted = node, copies_wanted
        self.has_quorum = True
        self._began_at: float | None = None

    def copies_min(self, record: ShardRecord) -> int:
        """An operator who forced a leader wants to go on with what is left."""
        return 1 if record.forced else self._copies_wanted

    def began(self, now: float) -> None:
        """The leader lives; the first time counts. now: monotonic seconds"""
        if self._began_at is None:
            self._began_at = now

    def maybe_change(
        self, record: ShardRecord, followers: Mapping[str, FollowerProgress], now: float
    ) -> fx.QuorumLost | fx.QuorumBack | None:
        assert self._began_at is not None
        heard = [self._node]
        unheard: list[str] = []
        for peer, follower in followers.items():
            at = follower.heard_at if follower.heard_at is not None else self._began_at
            (heard if now - at < QUORUM_SECONDS else unheard).append(peer)
        answers = has_quorum(record, heard) and len(heard) >= self.copies_min(record)
        if answers == self.has_quorum:
            return None
        self.has_quorum = answers
        return fx.QuorumBack() if answers else fx.QuorumLost(unheard)
