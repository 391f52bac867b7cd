"""Majorities of a shard's voters; of the old and of the new ones while members change.

docs/explanation/replication.md, R7.
Who they are is what the newest configuration says that replicas have noted, or the record if that is newer: a control
plane that was restored from an old copy names old ones. R2"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication.messages import Members
from rumq.cluster.replication.ports import Voters

HasVoters = ShardRecord | Members


def has_quorum(record: HasVoters, who: Collection[str]) -> bool:
    """Whether these nodes are a majority: of the replicas, and of the old ones if there are any."""
    return all(2 * sum(each in who for each in group) > len(group) for group in groups(record))


def committed_lsn(record: HasVoters, synced: Mapping[str, int]) -> int:
    """The highest lsn up to which a majority has synced. synced: by node id; of others it is not known"""
    return min(majority_lsn(group, synced) for group in groups(record))


def majority_lsn(group: list[str], synced: Mapping[str, int]) -> int:
    ordered = sorted((synced.get(each, 0) for each in group), reverse=True)
    return ordered[len(group) // 2]


def majority_of(count: int) -> int:
    return count // 2 + 1


def copies_lsn(count: int, synced: Mapping[str, int]) -> int:
    """The lsn up to which so many nodes have synced. synced: of all that get the log, learners too"""
    ordered = sorted(synced.values(), reverse=True)
    return ordered[count - 1] if len(ordered) >= count else 0


def groups(record: HasVoters) -> list[list[str]]:
    return [record.replicas, record.old_replicas] if record.old_replicas is not None else [record.replicas]


def members_of(record: ShardRecord, opened: int = 0) -> Members:
    """The configuration of a record. opened: epoch of the term that it is noted with; 0: as the record says"""
    return Members(opened, record.config, record.replicas, record.old_replicas)


def newest(record: ShardRecord, noted: Iterable[Members | None]) -> Members:
    """Whose promises a claimant needs. noted: by replicas

    Of what is noted, the configuration of the latest term counts; the record only if it has gone on from there. A
    newer record without a term is of a version that numbers no configurations: it counts as it always did."""
    known = [each for each in noted if each is not None]
    latest = max(known, key=lambda each: (each.opened, each.config), default=None)
    if latest is None or record.config > latest.config:
        return members_of(record)
    if not record.term and record.epoch > latest.opened:
        return Members(0, latest.config + 1, record.replicas, record.old_replicas)
    return latest


def noted(members: Members) -> Voters:
    """As a replica's disk has it."""
    return members.opened, members.config, members.replicas, members.old_replicas


def maybe_members(voters: Voters | None) -> Members | None:
    return Members(*voters) if voters is not None else None
