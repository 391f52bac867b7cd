"""A queue of ranges of lsns that is nearly always empty, and takes next to nothing then.

Knows no subscriber and no log."""
# compiled: hot

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

Range = tuple[int, int, int]  # (partition, first lsn, next lsn)


class RangeQueue:
    """As a deque, which would take 760 bytes from the start."""

    __slots__ = ("_held", "_ranges_max")

    def __init__(self, ranges_max: int | None = None) -> None:
        """ranges_max: with more of them the first ones go"""
        self._held: deque[Range] | None = None
        self._ranges_max = ranges_max

    def __len__(self) -> int:
        return 0 if self._held is None else len(self._held)

    def __iter__(self) -> Iterator[Range]:
        return iter(() if self._held is None else self._held)

    def first(self) -> Range:
        """raises: IndexError when there is none"""
        if self._held is None:
            raise IndexError("no range is queued")
        return self._held[0]

    def _made(self) -> deque[Range]:
        if self._held is None:
            self._held = deque(maxlen=self._ranges_max)
        return self._held

    def append(self, one: Range) -> None:
        self._made().append(one)

    def appendleft(self, one: Range) -> None:
        self._made().appendleft(one)

    def extend(self, ranges: Iterable[Range]) -> None:
        """Nothing is made for none."""
        for each in ranges:
            self.append(each)

    def popleft(self) -> Range:
        """raises: IndexError when there is none"""
        held = self._made()
        one = held.popleft()
        if not held:
            self._held = None
        return one

    def clear(self) -> None:
        self._held = None

    def replace(self, ranges: list[Range]) -> None:
        """Hold these instead."""
        self._held = deque(ranges, maxlen=self._ranges_max) if ranges else None
