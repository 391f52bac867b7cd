"""What a leader knows of the copies of its partitions, and how it tells the operator of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from commitlog.partition import Partition
from rumq.admin.cluster_rows import TermRow
from rumq.cluster.replication.leader_core import LeaderCore
from rumq.shards.replication.copied_partition import CopiedPartition, Place
from rumq.shards.replication.feeder import Feeder


class Copied:
    """One partition. feeders: by follower; places: by follower, up to where it has synced
    unsettled: (next lsn, bytes, monotonic seconds when it was written here) of groups that are not committed"""

    def __init__(self, source: CopiedPartition) -> None:
        self.source = source
        self.partition: Partition = source.partition
        self.is_quorum = source.partition.spec.durability == "quorum"
        self.feeders: dict[str, Feeder] = {}
        self.places: dict[str, Place] = {}
        self.unsettled: deque[tuple[int, int, float]] = deque()
        self.unsettled_bytes = self.group_bytes = 0

    def is_live(self, peer: str) -> bool:
        """Whether a follower gets what is written as it is written."""
        feeder = self.feeders.get(peer)
        return feeder is not None and feeder.is_live

    def behind_bytes(self, peer: str) -> int:
        """Of the partition's files, what a follower has not synced. Cost: the segments that it lacks"""
        name, stop = self.places.get(peer, ("", 0))
        lacks = 0
        for segment in reversed(self.source.segments()):
            if segment.name == name:
                return lacks + max(0, segment.stop - stop)
            lacks += segment.stop
        return lacks


def term_row(shard: int, core: LeaderCore, copied: Collection[Copied], now: float) -> TermRow:
    """now: monotonic seconds. Nodes are ids."""
    lacks = core.behind()
    heard = [peer for peer, count in lacks.items() if count is not None and core.is_heard(peer, now)]
    in_sync = [peer for peer in heard if all(each.is_live(peer) for each in copied)]
    return TermRow(
        shard=shard, epoch=core.epoch, leader=core.node, is_open=core.is_open, has_quorum=core.has_quorum,
        in_sync=[core.node, *in_sync], behind_records=lacks, members=core.record.members,
        behind_bytes={
            peer: count and sum(each.behind_bytes(peer) for each in copied)  # 0 and null are as of the records
            for peer, count in lacks.items()
        },
    )  # fmt: skip
