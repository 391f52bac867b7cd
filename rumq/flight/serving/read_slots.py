"""Bounds concurrent reads, fairly between holders: a holder is a user or an address.

gRPC has no time limit for writes, so a client that stops reading could keep its slot for ever. Such a read loses the
slot to the next one that needs it, and ends once its client receives the batch; the client then resumes after it.
The time is an argument."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from rumq.flight.errors import TooManyReads

READS_MAX = 64  # at once; each holds a few batches of 8 MiB
STALLED_SECONDS = 10.0  # for a client to receive a batch; a slower read may lose its slot
LEAVING_MAX = 64  # of one holder: reads without slot that still wait for their client
INFINITY = float("inf")


class Read:
    """A read with a slot. since: when gRPC got its batch, monotonic seconds; infinity while one is being built"""

    def __init__(self, holder: str) -> None:
        self.holder, self.since, self.ended = holder, INFINITY, False


class ReadSlots:
    def __init__(self, reads_max: int = READS_MAX, *, now: Callable[[], float]) -> None:
        self._max, self._now = reads_max, now
        self._lock = threading.Lock()
        self._going: dict[Read, None] = {}
        self._leaving: Counter[str] = Counter()

    def acquire(self, holder: str) -> Read:
        """raises: TooManyReads"""
        with self._lock:
            made = Read(holder)
            if self._leaving[holder] >= LEAVING_MAX:
                raise TooManyReads(f"{LEAVING_MAX} of your reads wait for their clients to receive a batch")
            if len(self._going) >= self._max:
                self._end(self._one_to_end(made))
            self._going[made] = None
            return made

    def batch_offered(self, read: Read) -> None:
        """A batch is being sent. raises: TooManyReads if the read lost its slot"""
        with self._lock:
            read.since = self._now()
            if read.ended:
                raise TooManyReads("others needed its slot: it resumes at the same record")

    def batch_taken(self, read: Read) -> None:
        """The batch was received."""
        read.since = INFINITY

    def release(self, read: Read) -> None:
        with self._lock:
            if not read.ended:
                del self._going[read]
                return
            self._leaving[read.holder] -= 1
            if not self._leaving[read.holder]:
                del self._leaving[read.holder]

    def _one_to_end(self, new: Read) -> Read:
        """The read of the largest holder that waits longest; if all hold equally many, a stalled one."""
        counts = Counter(read.holder for read in self._going)
        most = max(counts.values(), default=0)
        large = [read for read in self._going if counts[read.holder] == most]
        if most > counts[new.holder] + 1:
            return min(large, key=lambda read: read.since)
        until = self._now() - STALLED_SECONDS
        stalled = [read for read in self._going if read.since <= until]
        if not stalled:
            raise TooManyReads(f"{self._max} read already")
        return min(stalled, key=lambda read: (-counts[read.holder], read.since))

    def _end(self, read: Read) -> None:
        read.ended = True
        del self._going[read]
        self._leaving[read.holder] += 1
