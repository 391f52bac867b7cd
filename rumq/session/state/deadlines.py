"""Deadlines of sessions and of connections, at most one each. Time is an argument, monotonic seconds.

Of sessions, most of which have none, in a heap that knows the next one. Of connections on a wheel, which is looked at a
few times a second (docs/decisions/0082-a-connect-in-half.md)."""
# compiled: warm

from __future__ import annotations

import heapq
from math import inf
from typing import Any, Protocol

TICKS_A_SECOND = 4  # of the wheel
TICK_MAX = 1 << 40  # of deadlines beyond
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
    """A heap. An item's entry in it is its slot `timer`.

    A cancelled entry keeps no reference to its item, and is swept away with the others before they are more than the
    live ones."""

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


class OnWheel(Protocol):
    """due_at: monotonic seconds, inf: it has no deadline; due_place: in the list of its tick, set by the wheel alone"""

    due_at: float
    due_place: int


class DeadlineWheel:
    """A list for each quarter of a second in which any is due. An item knows its deadline and its place in the list, so
    one costs 8 bytes here, where an entry of a heap is an object of its own; to put and to cancel one is O(1)."""

    def __init__(self) -> None:
        self._ticks: dict[int, list[Any]] = {}
        self._count = 0
        self._looked = -TICK_MAX  # the last tick that was looked at: nothing is due before it

    def __len__(self) -> int:
        return self._count

    def put(self, item: OnWheel, deadline: float) -> None:
        """Set the item's deadline in place of any other; inf: none."""
        self.cancel(item)
        if deadline == inf:
            return
        tick = tick_of(deadline)
        if tick < self._looked:
            self._looked = tick
        items = self._ticks.get(tick)
        if items is None:
            items = self._ticks[tick] = []
        item.due_at = deadline
        item.due_place = len(items)
        items.append(item)
        self._count += 1

    def cancel(self, item: OnWheel) -> None:
        """Nothing happens if it has no deadline."""
        deadline = item.due_at
        if deadline == inf:
            return
        item.due_at = inf
        tick = tick_of(deadline)
        items = self._ticks[tick]
        last = items.pop()
        if last is not item:
            place = item.due_place
            items[place] = last
            last.due_place = place
        elif not items:
            del self._ticks[tick]
        self._count -= 1

    def take_due(self, now: float) -> list[Any]:
        """Take out the items whose deadline is not after `now`, the earliest first."""
        found: list[Any] = []
        last = tick_of(now)
        for tick in self._ticks_until(last):
            found += [item for item in self._ticks[tick] if item.due_at <= now]
        self._looked = last
        found.sort(key=due_at_of)
        for item in found:
            self.cancel(item)
        return found

    def _ticks_until(self, last: int) -> list[int]:
        """Those that have items, up to one. Cost: as many as have passed, or as there are if these are fewer."""
        if last - self._looked > len(self._ticks):
            return [tick for tick in self._ticks if tick <= last]
        return [tick for tick in range(self._looked, last + 1) if tick in self._ticks]


def tick_of(at: float) -> int:
    return int(at * TICKS_A_SECOND) if at * TICKS_A_SECOND < TICK_MAX else TICK_MAX


def due_at_of(item: Any) -> float:
    found: float = item.due_at
    return found
