"""Deadlines of links and of sessions, at most one each, that go when what they are of goes.

A heap. An entry that was cancelled holds nothing, and there are never many more of these than of others. Time is an
argument, monotonic seconds. Knows nothing of what has a deadline but its slot `timer`."""

from __future__ import annotations

import heapq
from typing import Any, Generic, Protocol, TypeVar

SWEEP_MIN = 1024  # cancelled entries are swept away when they are so many, and more than the others


class Timed(Protocol):
    timer: list[Any] | None


T = TypeVar("T", bound=Timed)


class Deadlines(Generic[T]):
    def __init__(self) -> None:
        self._heap: list[list[Any]] = []  # [deadline, number, whose or None]
        self._count = 0
        self._cancelled = 0

    def __len__(self) -> int:
        """How many entries there are, cancelled ones too."""
        return len(self._heap)

    def put(self, what: T, deadline: float) -> None:
        """Give it this deadline in place of any other."""
        self.cancel(what)
        self._count += 1
        what.timer = [deadline, self._count, what]
        heapq.heappush(self._heap, what.timer)

    def cancel(self, what: T) -> None:
        entry, what.timer = what.timer, None
        if entry is None:
            return
        entry[2] = None
        self._cancelled += 1
        if self._cancelled >= SWEEP_MIN and 2 * self._cancelled > len(self._heap):
            self._heap = [each for each in self._heap if each[2] is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def first(self) -> float | None:
        """The next deadline."""
        heap = self._heap
        while heap and heap[0][2] is None:
            heapq.heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else None

    def maybe_due(self, now: float) -> T | None:
        """Whose deadline has come, the earliest first; it has none from now on."""
        first = self.first()
        if first is None or first > now:
            return None
        what: T = heapq.heappop(self._heap)[2]
        what.timer = None
        return what
