"""Reads of files run in threads, few at once; addresses take turns, and so do the users of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from rumq.auth.fair_queue import UNBOUNDED, FairQueue

READS_MAX = 4


class ReadTurn:
    """A read that waits. given_up: nobody waits for it any more"""

    __slots__ = ("given_up", "ready")

    def __init__(self) -> None:
        self.ready, self.given_up = trio.Event(), False


class ReadTurns:
    """Each connection waits for one turn at most, so connections bound how many wait."""

    def __init__(self, running_max: int = READS_MAX) -> None:
        self._queue: FairQueue[ReadTurn] = FairQueue(running_max, UNBOUNDED)

    @asynccontextmanager
    async def turn(self, address: str, user: str) -> AsyncIterator[None]:
        """Hold a turn, after waiting for it."""
        mine = ReadTurn()
        self._queue.put(address, mine, user)
        self._start()
        try:
            await mine.ready.wait()
            yield
        finally:
            if mine.ready.is_set():
                self._queue.finished()
                self._start()
            else:
                mine.given_up = True

    def _start(self) -> None:
        while (turn := self._queue.maybe_next()) is not None:
            if turn.given_up:
                self._queue.finished()
            else:
                turn.ready.set()
