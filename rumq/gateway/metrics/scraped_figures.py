"""Figures of every shard, asked at most once a second: scrapes and the history's samples share an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.figures import ShardFigures
from rumq.admin.operations import OPERATIONS, Operation
from rumq.errors import RumqError

REMEMBER_SECONDS = 1.0
Ask = Callable[[Operation, q.Request], Awaitable[a.Answer]]


class ScrapedFigures:
    """now: monotonic seconds"""

    def __init__(self, ask: Ask, now: Callable[[], float]) -> None:
        self._ask, self._now = ask, now
        self._asking = trio.Lock()
        self._asked_at = float("-inf")
        self._found: list[ShardFigures] | None = None

    async def figures(self) -> tuple[float, list[ShardFigures] | None]:
        """When they were asked for, and the figures; None: not every shard answers."""
        async with self._asking:  # who comes meanwhile gets the same
            if self._now() - self._asked_at >= REMEMBER_SECONDS:
                self._found = await self._fresh()
                self._asked_at = self._now()
            return self._asked_at, self._found

    async def _fresh(self) -> list[ShardFigures] | None:
        try:
            found = await self._ask(OPERATIONS["metrics"], q.Nothing())
        except (RumqError, ValueError):
            return None
        assert isinstance(found, a.Metrics)
        return found.shards
