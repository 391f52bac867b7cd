"""The newest events of this process, for those who ask later: bounded in number and in bytes. Nothing waits for it.

`output` fills it; a shard answers from it (`rumqd ask events`), and the gateway shows it. Knows no clock."""
# compiled: warm

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

LEVELS = {"debug": 0, "info": 1, "warning": 2, "error": 3}
EVENTS_MAX = 2_000
BYTES_MAX = 1 << 20


class KeptEvent(NamedTuple):
    """number: from 1 in this run of the process; level: of LEVELS; line: the whole event as JSON"""

    number: int
    time_us: int
    level: int
    event: str
    line: bytes


class FoundEvents(NamedTuple):
    """Events in order, the newest last. next: number of the first that was not looked at; lost: no longer kept"""

    events: list[KeptEvent]
    next: int
    lost: int


class EventRing:
    """run: tells this run of the process from others; next: number of the next event

    cost: of an event an append; it is told from any thread, so there is a lock, which a finalizer may take again"""

    def __init__(self, run: int = 0, events_max: int = EVENTS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._events_max, self._bytes_max = events_max, bytes_max
        self.begin(run)

    def begin(self, run: int) -> None:
        """Forget all: of a process that was forked off, whose parent keeps what it told."""
        self.run, self.next = run, 1
        # Of each event, in three rows: an object for each would be 64 bytes, of 350.
        self._lines: deque[bytes] = deque()
        self._names: deque[str] = deque()
        # µs since 1970 << 2 | level, in the place of its number modulo their number
        self._stamps = array("q", bytes(8 * self._events_max))
        self._bytes = 0
        self._lock = threading.RLock()

    @property
    def first(self) -> int:
        """Number of the oldest event that is kept."""
        return self.next - len(self._lines)

    def add(self, time_us: int, level: str, event: str, line: bytes) -> None:
        lock = self._lock
        lock.acquire()
        try:
            self._stamps[self.next % self._events_max] = time_us << 2 | LEVELS.get(level, 3)
            self._lines.append(line)
            self._names.append(event)
            self.next += 1
            count, self._bytes = len(self._lines), self._bytes + len(line)
            while count > self._events_max or (self._bytes > self._bytes_max and count > 1):
                self._bytes -= len(self._lines.popleft())
                self._names.popleft()
                count -= 1
        finally:
            lock.release()

    def newest(self, limit: int, wanted: Callable[[KeptEvent], bool]) -> FoundEvents:
        with self._lock:
            numbers = range(self.next - 1, self.first - 1, -1)
            newest_first = map(self._event, numbers, reversed(self._names), reversed(self._lines))
            found = list(islice((each for each in newest_first if wanted(each)), limit))
            return FoundEvents(found[::-1], self.next, 0)

    def since(self, number: int, limit: int, wanted: Callable[[KeptEvent], bool]) -> FoundEvents:
        """The first of those from `number` on; what there is beyond the limit is for the next question."""
        with self._lock:
            first = max(number, self.first)
            skipped = first - self.first
            rest = map(
                self._event, range(first, self.next), islice(self._names, skipped, None),
                islice(self._lines, skipped, None),
            )  # fmt: skip
            found = list(islice((each for each in rest if wanted(each)), limit))
            following = found[-1].number + 1 if len(found) >= limit else self.next
            return FoundEvents(found, following, max(0, self.first - number))

    def _event(self, number: int, name: str, line: bytes) -> KeptEvent:
        stamp = self._stamps[number % self._events_max]
        return KeptEvent(number, stamp >> 2, stamp & 3, name, line)


def wants(level: str, pattern: str) -> Callable[[KeptEvent], bool]:
    """level: this one and above; pattern: of the name, with * and ?"""
    least = LEVELS[level]
    if pattern == "*":
        return lambda each: each.level >= least
    return lambda each: each.level >= least and fnmatchcase(each.event, pattern)
