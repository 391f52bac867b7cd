"""The bridges of the settings that run in this process: started, changed and ended as the settings say."""

from __future__ import annotations

import time
from collections.abc import Mapping

import trio

from rumq.bridge.bridge import RunningBridge, StillOurs, always_ours
from rumq.bridge.counts import BridgeCounts
from rumq.bridge.pairing import Pairing, PairingStore
from rumq.bridge.side import LOCAL, Side, forget_session
from rumq.errors import ClientError
from rumq.events.event_log import tell
from rumq.process.bridge.bridge_settings import local_side, remote_addresses, remote_sides, rules_of
from rumq.settings.table import Bridge, Settings

FORGET_SECONDS_MAX = 10.0


class RunningBridges:
    """The bridges of the settings, each with a cancel scope. own_id: of this broker, or of its cluster"""

    elsewhere = ""

    def __init__(
        self, store: PairingStore, own_id: str, nursery: trio.Nursery, still_ours: StillOurs = always_ours
    ) -> None:  # fmt: skip
        self._store, self._own_id, self._nursery, self._still_ours = store, own_id, nursery, still_ours
        self._running: dict[str, tuple[Bridge, RunningBridge, trio.CancelScope]] = {}
        self._forgetting: dict[str, trio.CancelScope] = {}  # bridges whose sessions are being ended

    def change(self, settings: Settings) -> None:
        """Bridges whose settings are the same go on; those with TLS begin anew, for their files may have changed."""
        wanted = {each.name: each for each in settings.bridge}
        ended = {
            name: each
            for name, (each, _, _) in self._running.items()
            if wanted.get(name) != each or each.url.startswith(("mqtts", "wss"))
        }
        for name in ended:
            self._running.pop(name)[2].cancel()
        for name, each in wanted.items():
            if name not in self._running:
                if name in self._forgetting:  # it is back: it goes on with what is left of its sessions
                    self._forgetting.pop(name).cancel()
                self._start(settings, each)
        for name in {*ended, *self._store.names()} - set(wanted) - set(self._forgetting):
            gone = ended.get(name)
            sides = [local_side(settings, gone or Bridge(name=name))]
            if gone is not None:
                sides += remote_sides(gone, self._own_id)
            scope = self._forgetting[name] = trio.CancelScope()
            self._nursery.start_soon(self._forget_unless_back, name, sides, scope)

    def counts(self) -> Mapping[str, BridgeCounts]:
        return {name: running.counts for name, (_, running, _) in self._running.items()}

    def _start(self, settings: Settings, bridge: Bridge) -> None:
        running = RunningBridge(
            rules_of(bridge), local_side(settings, bridge), remote_addresses(bridge, self._own_id),
            Pairing(self._store, bridge.name), tell,
            lambda: time.time_ns() // 1000, self._still_ours,
        )  # fmt: skip
        scope = trio.CancelScope()
        self._running[bridge.name] = bridge, running, scope

        async def until_cancelled() -> None:
            with scope:
                await running.run()

        self._nursery.start_soon(until_cancelled)

    async def _forget_unless_back(self, name: str, sides: list[Side], scope: trio.CancelScope) -> None:
        with scope:
            await self._forget(name, sides)
        if self._forgetting.get(name) is scope:
            del self._forgetting[name]

    async def _forget(self, name: str, sides: list[Side]) -> None:
        """End the sessions of a bridge that is in the settings no more: they would hold messages for nobody.

        While the one here is not ended the bridge stays noted: the next reload or start tries again."""
        is_ended_here = True
        for side in sides:
            why = ""
            try:
                await self._still_ours()
                with trio.move_on_after(FORGET_SECONDS_MAX) as scope:
                    await forget_session(side)
                if scope.cancelled_caught:
                    why = f"no answer within {FORGET_SECONDS_MAX:g} s"
            except (ClientError, OSError) as fault:
                why = str(fault)
            if why:
                tell("bridge.unforgotten", name=name, side=side.name, why=why)
                is_ended_here = is_ended_here and side.name != LOCAL
        if not is_ended_here:
            return
        try:
            await self._store.remove(name)
        except OSError as fault:
            tell("bridge.unforgotten", name=name, side="local", why=str(fault))
