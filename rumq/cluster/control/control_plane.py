"""The control plane: who is alive, and who leads which shard. A store elsewhere decides; nobody here does.

Rules, by the names that comments use:
C1  decide by compare-and-swap on a record's revision, never by a read or a lease
C2  a change without an answer is settled by reading its claim id; it is not sent again by itself
C3  a watch only shortens the wait: the truth is a list, every 10 s and after every gap
C4  claims are staggered (by the replicas, not here)
C5  the store does not answer: leaders go on leading, nobody claims, membership stays
C6  each shard is claimed for itself

Implementations: `etcd_control.py`, `local_control.py` (one node), `tests/cluster/control/memory_control.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from rumq.cluster.control.records import ClusterRecord, NodeRecord, ShardRecord, Versioned

LEASE_SECONDS = 3
NOT_THERE = Versioned(record=ShardRecord(epoch=0, leader="", claim="", replicas=[]), revision=0)


class ControlSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the store has of a cluster, as of one moment.

    shards: by number, `NOT_THERE` where a lower number has no record yet; numbers above the last one are not in it
    layout, removed: as in `View`"""

    cluster: ClusterRecord | None
    nodes: list[NodeRecord]
    shards: list[Versioned]
    layout: dict[str, int] = {}
    removed: list[str] = []


class Replaced(NamedTuple):
    """won: the record is the one that was asked for; now: the record as it is, None if there is none"""

    won: bool
    now: Versioned | None


class MemberHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One member of the store, as it answers now. seconds: for its answer; why: empty if it answers

    store: names the store and its members, the same at all of them; empty if it is not known"""

    endpoint: str
    version: str = ""
    is_leader: bool = False
    stored_bytes: int = 0
    seconds: float = 0.0
    why: str = ""
    store: str = ""


class ControlHealth(msgspec.Struct, frozen=True, kw_only=True):
    """kind: "etcd", "local" or "memory" """

    kind: str
    members: list[MemberHealth]


class ControlPlane(Protocol):
    """Every question raises `Unreachable` if nobody answers in time, and `Refused` if the store forbids it."""

    @property
    def requests(self) -> int:
        """Sent so far."""

    async def cluster_record(self, make: ClusterRecord) -> ClusterRecord:
        """The record of the cluster; `make` becomes it if there is none."""

    async def announce(self, node: NodeRecord) -> None:
        """Say that this node lives, under a lease of LEASE_SECONDS; again to change the record.

        The first time, an earlier run on the same disk at the same address is replaced: the lock of the data directory
        says that it is over. Later it is this run that is over. raises: NameTaken, LeaseLost"""

    async def renew(self) -> None:
        """Keep the lease. raises: LeaseLost"""

    async def leave(self) -> None:
        """Give the lease up: this node is gone at once."""

    async def snapshot(self) -> ControlSnapshot:
        """One read of everything."""

    async def nodes(self) -> list[NodeRecord]:
        """Nodes with a live lease, by id."""

    async def shards(self) -> list[Versioned]:
        """By number, as in `ControlSnapshot`."""

    async def replace(self, shard: int, revision: int, record: ShardRecord) -> Replaced:
        """Put a record in the place of the one with `revision`; 0: where there is none. raises: OutcomeUnknown"""

    async def settle(self, shard: int, revision: int, claim: str) -> Replaced:
        """What became of a `replace` without an answer (C2).

        While the record still has `revision` the change may yet arrive, so this raises OutcomeUnknown: ask later, or
        replace again with the same revision, of which only one can win."""

    async def stamp(self, disk: str, stamp: int) -> int:
        """Note the stamp of a disk, if it is higher than the one that is there. returns: the one that was there"""

    async def layout(self, make: dict[str, int]) -> dict[str, int]:
        """How many partitions each stream has in this cluster; `make` becomes it if nothing was said yet."""

    async def note_removed(self, node: str, *, is_removed: bool) -> None:
        """Note that an operator has removed a node, or takes it back. node: its id, of one that is gone, too"""

    async def changes(self, hint: Callable[[], None]) -> None:
        """Call `hint` whenever something may have changed, and after each time without a watch. Until cancelled."""

    async def version_faults(self) -> dict[str, list[str]]:
        """Versions of the members that answer, each with its known faults. raises: Refused, if one is too old"""

    async def health(self) -> ControlHealth:
        """How each member of the store is, for people. Raises nothing."""

    async def close(self) -> None:
        """Close connections; the lease stays."""


def shards_by_number(found: dict[int, Versioned]) -> list[Versioned]:
    return [found.get(number, NOT_THERE) for number in range(max(found, default=-1) + 1)]


def settled(now: Versioned | None, revision: int, claim: str) -> bool | None:
    """Whether a change with this claim is in force; None while it may still arrive."""
    if now is not None and now.record.claim == claim:
        return True
    return None if (now.revision if now else 0) == revision else False


def describe_node(node: NodeRecord) -> str:
    return f"{node.id} at {node.host}:{node.port}, incarnation {node.incarnation}"


def is_same_place(one: NodeRecord, other: NodeRecord) -> bool:
    """Whether two records are of runs that exclude each other: one disk, one address."""
    return (one.id, one.host, one.port) == (other.id, other.host, other.port)
