"""The control plane of a cluster of one node: a file, `<data>/_cluster/control.json`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import trio

from rumq.cluster.control.control_plane import (
    ControlHealth,
    ControlSnapshot,
    MemberHealth,
    Replaced,
    settled,
    shards_by_number,
)
from rumq.cluster.control.durable_file import replace_durably
from rumq.cluster.control.errors import ControlRefused, OutcomeUnknown
from rumq.cluster.control.records import ClusterRecord, NodeRecord, ShardRecord, Versioned


class _ControlFile(msgspec.Struct):
    revision: int = 0
    cluster: ClusterRecord | None = None
    shards: dict[int, Versioned] = {}
    layout: dict[str, int] = {}


class LocalControl:
    """A `ControlPlane`. Every change is synced before it is told; a call blocks for as long as that takes."""

    def __init__(self, data: Path) -> None:
        self._path = data / "_cluster" / "control.json"
        self._node: NodeRecord | None = None
        self.requests = 0
        self._hint: Callable[[], None] = lambda: None
        try:
            self._kept = msgspec.json.decode(self._path.read_bytes(), type=_ControlFile, strict=False)
        except FileNotFoundError:
            self._kept = _ControlFile()
        except (OSError, msgspec.MsgspecError) as fault:
            raise ControlRefused(
                f"{self._path}: {fault}: restore the file from a backup of the data directory"
            ) from fault

    async def cluster_record(self, make: ClusterRecord) -> ClusterRecord:
        await trio.lowlevel.checkpoint()
        if self._kept.cluster is None:
            self._kept.cluster = make
            self._keep()
        return self._kept.cluster

    async def announce(self, node: NodeRecord) -> None:
        await trio.lowlevel.checkpoint()
        self._node = node
        self._hint()

    async def renew(self) -> None:
        await trio.lowlevel.checkpoint()

    async def leave(self) -> None:
        await trio.lowlevel.checkpoint()
        self._node = None

    async def snapshot(self) -> ControlSnapshot:
        await trio.lowlevel.checkpoint()
        return ControlSnapshot(
            cluster=self._kept.cluster,
            nodes=[self._node] if self._node else [],
            shards=shards_by_number(self._kept.shards),
            layout=self._kept.layout,
        )

    async def nodes(self) -> list[NodeRecord]:
        return (await self.snapshot()).nodes

    async def shards(self) -> list[Versioned]:
        return (await self.snapshot()).shards

    async def replace(self, shard: int, revision: int, record: ShardRecord) -> Replaced:
        await trio.lowlevel.checkpoint()
        held = self._kept.shards.get(shard)
        if (held.revision if held else 0) != revision:
            return Replaced(held is not None and held.record.claim == record.claim, held)
        now = self._kept.shards[shard] = Versioned(record, self._kept.revision + 1)
        self._keep()
        return Replaced(True, now)

    async def settle(self, shard: int, revision: int, claim: str) -> Replaced:
        await trio.lowlevel.checkpoint()
        held = self._kept.shards.get(shard)
        won = settled(held, revision, claim)
        if won is None:
            raise OutcomeUnknown(f"shard {shard} still has revision {revision}")
        return Replaced(won, held)

    async def stamp(self, disk: str, stamp: int) -> int:
        """It is on the same disk."""
        await trio.lowlevel.checkpoint()
        return 0

    async def layout(self, make: dict[str, int]) -> dict[str, int]:
        await trio.lowlevel.checkpoint()
        if not self._kept.layout:
            self._kept.layout = make
            self._keep()
        return self._kept.layout

    async def note_removed(self, node: str, *, is_removed: bool) -> None:
        await trio.lowlevel.checkpoint()
        if is_removed:
            raise ControlRefused(f"{node} is the only node of this cluster: it cannot be removed")

    async def changes(self, hint: Callable[[], None]) -> None:
        self._hint = hint
        await trio.sleep_forever()

    async def version_faults(self) -> dict[str, list[str]]:
        await trio.lowlevel.checkpoint()
        return {}

    async def health(self) -> ControlHealth:
        return ControlHealth(kind="local", members=[MemberHealth(endpoint=str(self._path), is_leader=True)])

    async def close(self) -> None:
        pass

    def _keep(self) -> None:
        self._kept.revision += 1
        replace_durably(self._path, msgspec.json.encode(self._kept))
        self._hint()
