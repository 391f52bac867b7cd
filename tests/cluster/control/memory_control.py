"""A control plane in memory, with the faults of a real one. For tests and simulations."""

from __future__ import annotations

from collections.abc import Callable

import trio

from rumq.cluster.control.control_plane import (
    LEASE_SECONDS,
    ControlHealth,
    ControlSnapshot,
    MemberHealth,
    Replaced,
    describe_node,
    is_same_place,
    settled,
    shards_by_number,
)
from rumq.cluster.control.errors import LeaseLost, NameTaken, OutcomeUnknown, Unreachable
from rumq.cluster.control.records import ClusterRecord, NodeRecord, ShardRecord, Versioned


class MemoryStore:
    """What all nodes of a cluster share. Time is trio's; leases expire when somebody looks."""

    def __init__(self) -> None:
        self.revision = 0
        self.cluster: ClusterRecord | None = None
        self.shards: dict[int, Versioned] = {}
        self.stamps: dict[str, int] = {}  # by disk
        self.layout: dict[str, int] = {}
        self.removed: set[str] = set()
        self.leases: dict[int, float] = {}  # id -> when it expires
        self.announced: dict[str, tuple[NodeRecord, int]] = {}  # by name; lease
        self.hints: list[Callable[[], None]] = []

    def changed(self) -> int:
        self.revision += 1
        for hint in list(self.hints):
            hint()
        return self.revision

    def expire(self) -> None:
        now = trio.current_time()
        self.leases = {lease: until for lease, until in self.leases.items() if until > now}
        gone = [name for name, (_, lease) in self.announced.items() if lease not in self.leases]
        for name in gone:
            del self.announced[name]
        if gone:
            self.changed()

    def snapshot(self) -> ControlSnapshot:
        self.expire()
        nodes = sorted((node for node, _ in self.announced.values()), key=lambda node: node.id)
        return ControlSnapshot(
            cluster=self.cluster, nodes=nodes, shards=shards_by_number(self.shards), layout=self.layout,
            removed=sorted(self.removed),
        )  # fmt: skip

    def restore(self, old: ControlSnapshot) -> None:
        """As if etcd were restored from an old snapshot: records and revisions go back."""
        self.cluster = old.cluster
        self.shards = {number: each for number, each in enumerate(old.shards) if each.revision}
        self.revision = max((each.revision for each in old.shards), default=0)
        self.leases = {}
        self.expire()


class MemoryControl:
    """A `ControlPlane`: one node's way to the store, and what is wrong with it.

    is_unreachable: nobody answers; answers_lost: so many next changes are made, but their answers are lost
    changes_late: so many next changes get no answer and wait in `late`, to be made when the test calls them
    stale: reads answer with this; is_deaf: no watch tells anything"""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.is_unreachable = False
        self.is_deaf = False
        self.answers_lost = 0
        self.changes_late = 0
        self.late: list[Callable[[], object]] = []
        self.stale: ControlSnapshot | None = None
        self.requests = 0
        self._lease = 0
        self._is_announced = False

    async def cluster_record(self, make: ClusterRecord) -> ClusterRecord:
        await self._pass()
        if self.store.cluster is None:
            self.store.cluster = make
            self.store.changed()
        return self.store.cluster

    async def announce(self, node: NodeRecord) -> None:
        await self._pass()
        self.store.expire()
        held = self.store.announced.get(node.name)
        is_over = held and not self._is_announced and is_same_place(held[0], node)
        if held and held[0].incarnation != node.incarnation and not is_over:
            raise NameTaken(node.name, describe_node(node), describe_node(held[0]))
        if self._lease not in self.store.leases:
            self._lease = self.store.changed()
            self.store.leases[self._lease] = trio.current_time() + LEASE_SECONDS
        self.store.announced[node.name] = (node, self._lease)
        self._is_announced = True
        self.store.changed()

    async def renew(self) -> None:
        await self._pass()
        self.store.expire()
        if self._lease not in self.store.leases:
            raise LeaseLost
        self.store.leases[self._lease] = trio.current_time() + LEASE_SECONDS

    async def leave(self) -> None:
        await self._pass()
        self.store.leases.pop(self._lease, None)
        self.store.expire()

    async def snapshot(self) -> ControlSnapshot:
        await self._pass()
        return self.stale or self.store.snapshot()

    async def nodes(self) -> list[NodeRecord]:
        return (await self.snapshot()).nodes

    async def shards(self) -> list[Versioned]:
        return (await self.snapshot()).shards

    async def replace(self, shard: int, revision: int, record: ShardRecord) -> Replaced:
        await self._pass()

        def change() -> Replaced:
            held = self.store.shards.get(shard)
            if (held.revision if held else 0) != revision:
                return Replaced(held is not None and held.record.claim == record.claim, held)
            now = self.store.shards[shard] = Versioned(record, self.store.revision + 1)
            self.store.changed()
            return Replaced(True, now)

        if self.changes_late:
            self.changes_late -= 1
            self.late.append(change)
            raise OutcomeUnknown("late")
        done = change()
        if self.answers_lost:
            self.answers_lost -= 1
            raise OutcomeUnknown("answer lost")
        return done

    async def settle(self, shard: int, revision: int, claim: str) -> Replaced:
        shards = (await self.snapshot()).shards
        held = shards[shard] if shard < len(shards) and shards[shard].revision else None
        won = settled(held, revision, claim)
        if won is None:
            raise OutcomeUnknown(f"shard {shard} still has revision {revision}")
        return Replaced(won, held)

    async def stamp(self, disk: str, stamp: int) -> int:
        await self._pass()
        held = self.store.stamps.get(disk, 0)
        self.store.stamps[disk] = max(held, stamp)
        return held

    async def layout(self, make: dict[str, int]) -> dict[str, int]:
        await self._pass()
        if not self.store.layout:
            self.store.layout = make
            self.store.changed()
        return self.store.layout

    async def note_removed(self, node: str, *, is_removed: bool) -> None:
        await self._pass()
        (self.store.removed.add if is_removed else self.store.removed.discard)(node)
        self.store.changed()

    async def changes(self, hint: Callable[[], None]) -> None:
        def unless_deaf() -> None:
            if not self.is_deaf and not self.is_unreachable:
                hint()

        self.store.hints.append(unless_deaf)
        try:
            await trio.sleep_forever()
        finally:
            self.store.hints.remove(unless_deaf)

    async def version_faults(self) -> dict[str, list[str]]:
        await trio.lowlevel.checkpoint()
        return {}

    async def health(self) -> ControlHealth:
        why = "unreachable" if self.is_unreachable else ""
        return ControlHealth(kind="memory", members=[MemberHealth(endpoint="memory", is_leader=True, why=why)])

    async def close(self) -> None:
        pass

    async def _pass(self) -> None:
        self.requests += 1
        await trio.lowlevel.checkpoint()
        if self.is_unreachable:
            raise Unreachable("cut off")
