"""How a leader tells the operator of the copies of its partitions."""

from __future__ import annotations

from collections.abc import Collection

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.replication.leader_core import LeaderCore
from rumq.shards.replication.feeding.copies import PartitionCopies


def term_row(shard: int, core: LeaderCore, copied: Collection[PartitionCopies], now: float) -> TermRow:
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
