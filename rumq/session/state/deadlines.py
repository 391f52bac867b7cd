"""Deadlines of connections or sessions, at most one each. Time is an argument, monotonic seconds.

A heap. A cancelled entry keeps no reference to its item, and is swept away with the others before they are more than
the live ones."""
# compiled: warm

from __future__ import annotations

import heapq
from math import inf
from typing import Any, Protocol

SWEEP_MIN = 1024  # cancelled entries are swept away when they are so many, and more than the others


class Deadline:
    """An entry of the heap. at: monotonic seconds; number: of two at the same time the older one comes first

    item: None once it is cancelled"""

    __slots__ = ("at", "item", "number")

    def __init__(self, at: float, number: int, item: object) -> None:
        self.at, self.number, self.item = at, number, item

    def __lt__(self, other: Deadline) -> bool:
        return self.number < other.number if self.at == other.at else self.at < other.at


class Timed(Protocol):
    timer: Deadline | None


class Deadlines:
    """An item's entry in the heap is its slot `timer`."""

    def __init__(self) -> None:
        self._heap: list[Deadline] = []
        self._count = 0
        self._cancelled = 0

    def __len__(self) -> int:
        """The size of the heap, with cancelled entries."""
        return len(self._heap)

    def put(self, item: Timed, deadline: float) -> None:
        """Set the item's deadline in place of any other."""
        self.cancel(item)
        self._count += 1
        item.timer = Deadline(deadline, self._count, item)
        heapq.heappush(self._heap, item.timer)

    def cancel(self, item: Timed) -> None:
        entry, item.timer = item.timer, None
        if entry is None:
            return
        entry.item = None
        self._cancelled += 1
        if self._cancelled >= SWEEP_MIN and 2 * self._cancelled > len(self._heap):
            self._heap = [each for each in self._heap if each.item is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def earliest(self) -> float:
        """The next deadline; inf: there is none."""
        heap = self._heap
        while heap:
            first = heap[0]
            if first.item is not None:
                return first.at
            heapq.heappop(heap)
            self._cancelled -= 1
        return inf

    def maybe_due(self, now: float) -> Any:
        """Take out the item with the earliest deadline, if that is not after `now`; None: there is no such item."""
        if self.earliest() > now or not self._heap:
            return None
        item: Any = heapq.heappop(self._heap).item
        item.timer = None
        return item
