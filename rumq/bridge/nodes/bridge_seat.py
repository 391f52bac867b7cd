"""Whether this node runs the cluster's bridges: while it leads shard 0, it takes over what was noted of their sessions,
and runs them until another node can have taken over.

docs/decisions/0075-bridges-follow-shard-0.md"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from rumq.admin.socket.held_values import Ask, HeldValues, Named, ValuesLost, take_over_values
from rumq.cluster.control.leaders import leader_name, leads_here, unable_nodes
from rumq.cluster.control.records import View

RUNNING_SHARD = 0  # whose leader runs all bridges
AGAIN_SECONDS = 0.1  # after the shard's leader did not answer: it is taking office, or has left it
CONFIRM_SECONDS = 0.5
FAULT_SECONDS = 5.0  # after bridges could not begin
Event = Callable[..., None]
RunBridges = Callable[[HeldValues, list[Named]], Awaitable[None]]


class BridgeSeat:
    """node: this one's name; run_bridges: runs them until it is cancelled, or returns; raises: ValuesLost"""

    def __init__(self, node: str, ask: Ask, run_bridges: RunBridges, event: Event) -> None:
        self._node, self._ask, self._run_bridges, self._event = node, ask, run_bridges, event
        self._view: View | None = None
        self._held: HeldValues | None = None  # while the bridges run here
        self._changed = trio.Event()
        self._told = ""

    def see(self, view: View) -> None:
        self._view = view
        self._changed.set()
        if self._held is not None and not leads_here(view, RUNNING_SHARD):
            self._held.close()  # before the successor takes the connections

    @property
    def elsewhere(self) -> str:
        """For the operator: which node runs the bridges; empty: this one."""
        if (why := self._why_unable()) is not None:
            return f"no node runs the bridges while {why}"
        if leads_here(self._view, RUNNING_SHARD):
            return ""
        name = leader_name(self._view, RUNNING_SHARD)
        return f"node {name} runs the bridges: ask there" if name else "no node runs the bridges: shard 0 has no leader"

    async def run(self) -> None:
        """Take the bridges over and leave them, until cancelled."""
        while True:
            self._changed = trio.Event()
            if not leads_here(self._view, RUNNING_SHARD) or not self._is_able():
                await self._changed.wait()
                continue
            try:
                held, found = await take_over_values(self._ask)
            except ValuesLost:
                await trio.sleep(AGAIN_SECONDS)
                continue
            await self._hold(held, found)

    def _why_unable(self) -> str | None:
        names = unable_nodes(self._view, RUNNING_SHARD)
        return f"node {', '.join(names)} has a version that would lose what they note: upgrade it" if names else None

    def _is_able(self) -> bool:
        why = self._why_unable() or ""
        if why and why != self._told:
            self._event("bridges.refused", why=why)
        self._told = why
        return not why

    async def _hold(self, held: HeldValues, found: list[Named]) -> None:
        self._event("bridges.led", turn=held.turn)
        self._held = held

        async def run_bridges() -> None:
            try:
                await self._run_bridges(held, found)
            except ValuesLost:
                pass
            except OSError as fault:
                self._event("bridges.refused", why=str(fault))
                await trio.sleep(FAULT_SECONDS)
            held.close()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run_bridges)
                nursery.start_soon(self._confirm, held)
                await held.lost.wait()
                nursery.cancel_scope.cancel()
        finally:
            self._held = None
            self._event("bridges.left", turn=held.turn)

    async def _confirm(self, held: HeldValues) -> None:
        """Bridges check by themselves whenever they connect; this ends those whose connections nobody has taken."""
        while self._is_able() and await held.is_current():
            await trio.sleep(CONFIRM_SECONDS)
        held.close()
