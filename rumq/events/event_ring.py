"""The newest events of this process, for those who ask later: bounded in number and in bytes. Nothing waits for it.

`output` fills it; a shard answers from it (`rumqd ask events`), and the gateway shows it. Knows no clock."""
# compiled: warm

from __future__ import annotations

import threading
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
        self._kept: deque[KeptEvent] = deque()
        self._bytes = 0
        self._lock = threading.RLock()

    @property
    def first(self) -> int:
        """Number of the oldest event that is kept."""
        return self.next - len(self._kept)

    def add(self, time_us: int, level: str, event: str, line: bytes) -> None:
        with self._lock:
            kept = self._kept
            kept.append(KeptEvent(self.next, time_us, LEVELS.get(level, 3), event, line))
            self.next += 1
            self._bytes += len(line)
            while len(kept) > self._events_max or (self._bytes > self._bytes_max and len(kept) > 1):
                self._bytes -= len(kept.popleft().line)

    def newest(self, limit: int, wanted: Callable[[KeptEvent], bool]) -> FoundEvents:
        with self._lock:
            found = list(islice((each for each in reversed(self._kept) if wanted(each)), limit))
            return FoundEvents(found[::-1], self.next, 0)

    def since(self, number: int, limit: int, wanted: Callable[[KeptEvent], bool]) -> FoundEvents:
        """The first of those from `number` on; what there is beyond the limit is for the next question."""
        with self._lock:
            lost = max(0, self.first - number)
            rest = islice(self._kept, max(0, number - self.first), None)
            found = list(islice((each for each in rest if wanted(each)), limit))
            return FoundEvents(found, found[-1].number + 1 if len(found) >= limit else self.next, lost)


def wants(level: str, pattern: str) -> Callable[[KeptEvent], bool]:
    """level: this one and above; pattern: of the name, with * and ?"""
    least = LEVELS[level]
    if pattern == "*":
        return lambda each: each.level >= least
    return lambda each: each.level >= least and fnmatchcase(each.event, pattern)
