"""Counters that publishing and subscribing workers share: a memory-mapped file of u64.

Each number has one writer. Refuses to know what the numbers are used for, but for `Lead`, which holds a
publisher back while its messages are too far ahead of the subscribers.
"""

import mmap
import os
import time
from pathlib import Path

# Messages dropped at the very end of the queue never move the subscribers' position: after this long without
# any progress they are taken for lost.
STALL_S = 0.2


def create(path: Path, publishers: int, workers: tuple[int, int]) -> None:
    path.write_bytes(bytes(8 * (publishers + 2 * workers[0] + workers[1])))


class Progress:
    """sent[p]: messages of publisher p, once it has ended; offered[w], ended[w]: of publishing worker w;
    position[w]: messages received or skipped by subscribing worker w."""

    def __init__(self, path: Path, publishers: int, workers: tuple[int, int]) -> None:
        with path.open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size)
        numbers = memoryview(self.map).cast("Q")
        publishing, subscribing = workers
        self.numbers = numbers
        self.sent = numbers[:publishers]
        self.offered = numbers[publishers : publishers + publishing]
        self.ended = numbers[publishers + publishing : publishers + 2 * publishing]
        self.position = numbers[publishers + 2 * publishing :]
        assert len(self.position) == subscribing

    def clear(self) -> None:
        for i in range(len(self.numbers)):
            self.numbers[i] = 0


class Lead:
    """How many messages may be sent now."""

    def __init__(self, progress: Progress, lead: int, deliveries_per_message: int) -> None:
        self._progress, self._lead, self._deliveries = progress, lead, deliveries_per_message
        self._position, self._moved_at, self._written_off = 0, time.monotonic(), 0

    def room(self) -> int:
        if not self._deliveries:
            return self._lead  # nobody listens, so nobody can be behind
        position = sum(self._progress.position) // self._deliveries
        ahead = sum(self._progress.offered) - position
        # What was written off and came after all is no longer written off.
        self._written_off = min(self._written_off, ahead)
        ahead -= self._written_off
        if position != self._position:
            self._position, self._moved_at = position, time.monotonic()
        elif ahead >= self._lead and time.monotonic() - self._moved_at > STALL_S:
            self._written_off += ahead
            self._moved_at = time.monotonic()
            ahead = 0
        return self._lead - ahead
