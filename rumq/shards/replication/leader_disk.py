"""Whether the disk of a leader is good enough to lead: R10. docs/explanation/replication.md

A leader whose disk is full, fails or is slow has one of its followers lead instead, whose disk is well. Where no
follower is well it stays: it refuses publishers as a broker alone does, and what is committed can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from commitlog.log.partition import Partition
from rumq.cluster.replication.leader_core import LeaderCore
from rumq.loop.ports import EventSink

SLOW_SECONDS = 2.0
SLOW_GROUPS = 2  # in a row, of one partition, before the disk counts as slow: a single one may be a pause
RESIGN_SECONDS = 5.0  # between two attempts to resign
HUNG_SECONDS = SLOW_SECONDS * SLOW_GROUPS


class DiskProblem(NamedTuple):
    """can_write: what is pending can be written, so that a hand-over waits for it"""

    why: str
    can_write: bool


class WriteDelays(Protocol):
    """slow_groups: of each partition, write groups in a row that took SLOW_SECONDS"""

    slow_groups: list[int]

    def busy_seconds(self) -> float:
        """How long the oldest group in flight has been so."""


class Space(Protocol):
    """is_full: less than the reserve is free; is_unreachable: the data directory is not where it was"""

    is_full: bool
    is_unreachable: bool


class LeaderCommit(WriteDelays, Protocol):
    """`rumq.shards.write_path.group_commit`."""

    @property
    def space(self) -> Space:
        """Who knows how much is free."""

    def replicated(self, index: int, lsn: int) -> None:
        """A majority has a partition up to an lsn."""

    def is_written(self) -> bool: ...
    def give_up(self, seconds: float, why: str) -> int:
        """End those who have waited so long for an acknowledgement. returns: how many"""

    def is_settled(self) -> bool: ...
    def freeze(self, is_frozen: bool) -> None: ...


def maybe_problem(partitions: Sequence[Partition], groups: WriteDelays, space: Space) -> DiskProblem | None:
    offline = next((p.offline for p in partitions if p.offline is not None), None)
    if offline is not None:
        return DiskProblem(f"the disk fails: {offline}", can_write=False)
    if space.is_unreachable:
        return DiskProblem("the data directory is not where it was", can_write=False)
    hung = groups.busy_seconds()
    if hung >= HUNG_SECONDS:
        return DiskProblem(f"the disk has not written for {hung:.1f} s", can_write=False)
    if max(groups.slow_groups) >= SLOW_GROUPS:
        return DiskProblem(f"the disk is slow: {SLOW_SECONDS:g} s for a write, repeatedly", can_write=False)
    if space.is_full:
        return DiskProblem("the disk is full", can_write=True)
    return None


class Leading(Protocol):
    """`rumq.shards.replication.succession`."""

    core: LeaderCore

    def disk_problem(self) -> DiskProblem | None: ...
    def hand_over(self, to: str, done: Callable[[str], None]) -> None: ...
    def resign(self, to: str, why: str) -> None: ...


class DiskWatch:
    """Looks after the disk of a leader of a shard."""

    def __init__(self, leading: Leading, shard: int, events: EventSink) -> None:
        self._leading, self._shard, self._events = leading, shard, events
        self._next = 0.0

    def look(self, now: float) -> None:
        """Have another lead if that is better. now: monotonic seconds"""
        core = self._leading.core
        if now < self._next or not core.is_open:
            return
        problem = self._leading.disk_problem()
        to = core.maybe_successor() if problem is not None else None
        if problem is None or to is None:
            return
        self._next = now + RESIGN_SECONDS
        self._events.tell("cluster.resigns", shard=self._shard, to=to, why=problem.why)
        if problem.can_write:
            self._leading.hand_over(to, lambda why: None)
        else:
            self._leading.resign(to, problem.why)
