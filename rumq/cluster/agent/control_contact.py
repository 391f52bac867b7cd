"""Whether the control plane answers this node; told once when it stops, and once when it is back."""

from __future__ import annotations

from collections.abc import Callable

import trio

from rumq.events.output import get_logger

LOST_SECONDS = 2.0

log = get_logger("rumq.cluster")


class ControlContact:
    """lost: called when nothing has been answered for LOST_SECONDS; renew_seconds: that the last renewal took"""

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost
        self._answered_at = -1.0
        self._is_lost = False
        self._why = "it has not answered yet"
        self.renew_seconds = 0.0

    @property
    def lost_seconds(self) -> float:
        """How long there has been no answer; 0 while there are."""
        return trio.current_time() - self._answered_at if self._is_lost else 0.0

    def answered(self) -> None:
        if self._is_lost:
            log.info("cluster.etcd_back", seconds=round(self.lost_seconds, 1))
            self._is_lost = False
        self._answered_at = trio.current_time()

    def failed(self, fault: Exception) -> None:
        self._why = str(fault)

    async def watch(self) -> None:
        """Until cancelled."""
        self._answered_at = max(self._answered_at, trio.current_time())
        while True:
            wait = self._answered_at + LOST_SECONDS - trio.current_time()
            if wait > 0:
                await trio.sleep(wait)
                continue
            if not self._is_lost:
                self._is_lost = True
                log.error("cluster.etcd_lost", seconds=LOST_SECONDS, why=self._why)
                self._lost()
            await trio.sleep(LOST_SECONDS)
