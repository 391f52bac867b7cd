"""Reads of what was last wait here while this shard may not be the one to answer: R15, docs/explanation/replication.md.

A leader that was replaced without knowing it has old retained messages. So whoever wants the newest ones, or a replay,
waits until the leader holds the lease of the majority. What waits is one request of each client, which is not read
meanwhile, and questions of other shards that wait for as many."""

from __future__ import annotations

from collections.abc import Callable

from rumq.loop.ports import Call, Timers

LOOK_SECONDS = 0.02  # while something waits


class ReadGate:
    """is_open: whether what is here is the newest; asked once the request is here, so it looks at the time anew"""

    def __init__(self, is_open: Callable[[], bool], timers: Timers) -> None:
        self.is_open, self._timers = is_open, timers
        self._waiting: list[Call] = []

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def when_open(self, call: Call) -> None:
        """Call now, or in a later turn."""
        if self.is_open():
            call()
            return
        if not self._waiting:
            self._timers.later(LOOK_SECONDS, self._look)
        self._waiting.append(call)

    def _look(self) -> None:
        if not self.is_open():
            self._timers.later(LOOK_SECONDS, self._look)
            return
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._timers.next_turn(call)
