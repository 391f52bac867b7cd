"""Deadlines that many share: what is due within a hundredth of a second is due together, at a tick, never early.

A turn of a task costs as much as ten answers, more where other programs have the caches meanwhile. No clock here."""

from __future__ import annotations

import heapq
import math
from typing import Generic, TypeVar

TICKS_PER_SECOND = 100
ROUNDING = 1e-6  # of the time between two ticks: a moment that is a tick but for this is one

Due = TypeVar("Due")


def tick_at(moment: float) -> float:
    """The tick at a moment, or the next one. In seconds, of the caller's clock"""
    return math.ceil(moment * TICKS_PER_SECOND - ROUNDING) / TICKS_PER_SECOND


class SharedDeadlines(Generic[Due]):
    def __init__(self) -> None:
        self._due: dict[float, list[Due]] = {}  # by ticks
        self._ticks: list[float] = []  # a heap

    def add(self, tick: float, what: Due) -> None:
        found = self._due.get(tick)
        if found is None:
            self._due[tick] = [what]
            heapq.heappush(self._ticks, tick)
        else:
            found.append(what)

    @property
    def next_at(self) -> float:
        """When something is due; inf: nothing is there."""
        return self._ticks[0] if self._ticks else math.inf

    def take(self, now: float) -> list[Due]:
        """What is due."""
        found: list[Due] = []
        while self._ticks and self._ticks[0] <= now:
            found += self._due.pop(heapq.heappop(self._ticks))
        return found
