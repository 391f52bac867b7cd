"""The bridges of a cluster, in the process of one node: they run while the node leads shard 0."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import trio

from rumq.admin.socket.held_values import Ask, HeldValues, Named
from rumq.bridge.counts import BridgeCounts
from rumq.bridge.nodes.bridge_seat import BridgeSeat
from rumq.bridge.nodes.kept_pairings import KeptPairings, inherit
from rumq.bridge.pairing import PairingFiles
from rumq.errors import ConnectionLost
from rumq.events.event_log import tell
from rumq.process.bridge.running_bridges import RunningBridges
from rumq.settings.table import Settings


class NodeBridges:
    """folder: where a broker alone had its pairings; own_id: of the cluster"""

    def __init__(self, settings: Settings, folder: Path, own_id: str, ask: Ask) -> None:
        self._settings, self._folder, self._own_id = settings, folder, own_id
        self.seat = BridgeSeat(settings.cluster.node, ask, self._run, tell)
        self._running: RunningBridges | None = None

    @property
    def elsewhere(self) -> str:
        return "" if self._running is not None else self.seat.elsewhere

    def change(self, settings: Settings) -> None:
        self._settings = settings
        if self._running is not None:
            self._running.change(settings)

    def counts(self) -> Mapping[str, BridgeCounts]:
        return {} if self._running is None else self._running.counts()

    async def _run(self, held: HeldValues, found: list[Named]) -> None:
        async def still_ours() -> None:
            if not await held.is_current():
                raise ConnectionLost("another node may run the bridges now")

        store = KeptPairings(held, found)
        await inherit(store, PairingFiles(self._folder))
        try:
            async with trio.open_nursery() as nursery:
                self._running = RunningBridges(store, self._own_id, nursery, still_ours)
                self._running.change(self._settings)
                await trio.sleep_forever()
        finally:
            self._running = None
