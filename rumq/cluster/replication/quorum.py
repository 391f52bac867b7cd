"""Majorities of a shard's voters; of the old and of the new ones while members change. docs/replication.md."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rumq.cluster.control.records import ShardRecord


def has_quorum(record: ShardRecord, who: Collection[str]) -> bool:
    """Whether these nodes are a majority: of the replicas, and of the old ones if there are any."""
    return all(2 * sum(each in who for each in group) > len(group) for group in groups(record))


def committed_lsn(record: ShardRecord, synced: Mapping[str, int]) -> int:
    """The highest lsn up to which a majority has synced. synced: by node id; of others it is not known"""
    return min(majority_lsn(group, synced) for group in groups(record))


def majority_lsn(group: list[str], synced: Mapping[str, int]) -> int:
    ordered = sorted((synced.get(each, 0) for each in group), reverse=True)
    return ordered[len(group) // 2]


def groups(record: ShardRecord) -> list[list[str]]:
    return [record.replicas, record.old_replicas] if record.old_replicas is not None else [record.replicas]
