"""Make replayed journal state fit the log as it is at this start.

A log of durability `process` may have lost its end, another shard may have died before it wrote what was seen here, and
the configuration may have other partitions: nothing may refer to records that are not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commitlog.log.partition_types import PartitionReader
from router.readers.slots import partition_of
from rumq.session.journal.entries import OPEN_END
from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.bus.remote_partition import RemotePartition


def fit_to_partitions(
    state: ReplayedState,
    layout: tuple[str, ...],
    partitions: Sequence[PartitionReader],
    ends: Mapping[int, int] | None = None,
) -> None:
    """Fit the state to the store's partitions; owners of remote ones must have been met.

    ends: partition -> next lsn at the start of this run, of those that may have grown since. Records appended in this
    run may reuse lsns at or above it; journal positions there are stale."""
    found = ends or {}
    state.changed |= fit_to_log(state, layout, [found.get(p.index, known_below(p)) for p in partitions])
    shown = shown_below(partitions, found)
    for session in state.sessions.values():
        state.changed |= lower(session.redelivered_below, shown)
    for partition in partitions:
        if partition.is_volatile:
            move_to_end(state, partition.index, partition.next_lsn)


def known_below(partition: PartitionReader) -> int:
    """Up to where a position in the journal is that of the same record now."""
    if isinstance(partition, RemotePartition):
        return min(partition.next_lsn, partition.run.same_below)
    return partition.next_lsn


def shown_below(partitions: Sequence[PartitionReader], ends: Mapping[int, int]) -> list[int]:
    """Up to where an earlier run may have sent records: the end of each partition; OPEN_END where its owner is missing.

    ends: as of `fit_to_partitions`"""
    return [
        OPEN_END if isinstance(p, RemotePartition) and p.found is not None else ends.get(p.index, p.next_lsn)
        for p in partitions
    ]


def end_seen(state: ReplayedState, index: int) -> int:
    """How far a partition went, as far as a journal with checkpoints knows: no position in it is beyond."""
    ends = [state.seen[index], state.tags_from[index]]
    for session in state.sessions.values():
        ends += [cursors[index] for cursors in session.cursors.values()]
        ends += [lsn for lsn in session.redelivered_below[index : index + 1] if lsn != OPEN_END]
        if session.window is not None:
            ends += [lsn + 1 for _, _, code, lsn in session.window.waiting() if partition_of(code) == index]
    for share in state.shares.values():
        ends.append(share.cursors[index])
        ends += [stop for where, _, stop in share.returned if where == index]
        ends += [lsn + 1 for where, lsn in share.assigned if where == index]
    ends += [message.lsn + 1 for message in state.retained.values() if message.partition == index]
    return max(ends)


def fit_to_log(state: ReplayedState, layout: tuple[str, ...], next_lsns: list[int]) -> bool:
    """Move the state to these partitions and drop what lies beyond their ends; returns whether anything changed."""
    changed = False
    if state.layout != layout:
        changed = bool(state.layout)
        state.remap(layout, next_lsns)
    for session in state.sessions.values():
        for cursors in session.cursors.values():
            changed |= lower(cursors, next_lsns)
        if session.window is not None:
            for index, next_lsn in enumerate(next_lsns):
                changed |= session.window.drop_from(index, next_lsn) > 0
    for share in state.shares.values():
        changed |= lower(share.cursors, next_lsns)
        share.returned = [(p, a, min(b, next_lsns[p])) for p, a, b in share.returned if a < next_lsns[p]]
        share.assigned = {(p, lsn) for p, lsn in share.assigned if lsn < next_lsns[p]}
    for vector in (state.retained_from, state.tags_from):
        lower(vector, next_lsns)
        vector.extend([0] * (len(next_lsns) - len(vector)))
    for topic, message in list(state.retained.items()):
        if message.lsn >= next_lsns[message.partition]:
            # It was delivered and never written: the topic's previous message is looked for in the log again.
            del state.retained[topic]
            state.retained_from[message.partition] = 0
            changed = True
    return changed


def move_to_end(state: ReplayedState, index: int, next_lsn: int) -> None:
    """Have every reader continue at the end of a volatile partition, whose records did not outlive the last run."""
    for session in state.sessions.values():
        for cursors in [*session.cursors.values(), session.redelivered_below]:
            if cursors:
                cursors[index] = next_lsn
    for share in state.shares.values():
        share.cursors[index] = next_lsn
        share.returned = [each for each in share.returned if each[0] != index]
        share.assigned = {each for each in share.assigned if each[0] != index}


def lower(cursors: list[int], next_lsns: list[int]) -> bool:
    """Bound each cursor by the end of its partition; returns whether one was beyond."""
    changed = False
    for index, (at, next_lsn) in enumerate(zip(cursors, next_lsns, strict=False)):
        if at > next_lsn:
            cursors[index] = next_lsn
            changed = True
    return changed
