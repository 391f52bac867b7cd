"""What one run of a queue has shown."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.process import process_cpu_s

PRODUCERS = CONSUMERS = 10
PAYLOAD_BYTES = 64
BATCH = 200  # messages that a producer has unacknowledged, and that a consumer takes at a time
LOAD = "load"  # this process
EMPTY = "empty"


class QueueRun(NamedTuple):
    """messages: pushed, acknowledged, consumed and acknowledged; seconds: from the first push to the last of these

    name: what lay in the queue; cpu_s: of each process, or kind of it, in these seconds"""

    messages: int
    seconds: float
    cpu_s: Mapping[str, float]
    name: str = EMPTY

    @property
    def rate(self) -> float:
        return self.messages / self.seconds

    def cpu_of_1000(self, process: str) -> float:
        """Processor seconds of 1,000 messages."""
        return 1000 * self.cpu_s[process] / self.messages

    def told(self) -> dict[str, object]:
        """As a document."""
        return {**self._asdict(), "rate": self.rate}


class Meter:
    """Time and processor time from now on. pids: of processes, by name; this one is added"""

    def __init__(self, pids: Mapping[str, Sequence[int]]) -> None:
        self._pids = {LOAD: [os.getpid()], **pids}
        self._cpu, self._began = self._read(), time.monotonic()

    def _read(self) -> dict[str, float]:
        return {name: sum(map(process_cpu_s, pids)) for name, pids in self._pids.items()}

    def run_of(self, messages: int, name: str = EMPTY) -> QueueRun:
        seconds = time.monotonic() - self._began
        spent = {name: after - self._cpu[name] for name, after in self._read().items()}
        return QueueRun(messages, seconds, spent, name)


class Ledger:
    """Which messages were consumed. left: how many were not yet; counts_any: that many of any, for none are known"""

    def __init__(self, messages: int, *, counts_any: bool = False) -> None:
        self._seen, self._counts_any = bytearray(messages), counts_any
        self.left = messages

    def consumed(self, body: bytes) -> None:
        """Messages that make a depth have negative numbers, and count where any does."""
        number = int(body[: body.index(b" ")])
        if self._counts_any:
            self.left = max(0, self.left - 1)
        elif number >= 0:
            self.left -= not self._seen[number]
            self._seen[number] = 1

    def check(self) -> None:
        """raises: Lost"""
        if self.left:
            raise Lost(f"{self.left} of {len(self._seen)} were not consumed")


class Lost(RuntimeError):
    """Not every acknowledged message was consumed."""


def payload(number: int) -> bytes:
    return b"%d " % number + b"x" * (PAYLOAD_BYTES - len(b"%d " % number))


def batches_of(producer: int, messages: int) -> list[range]:
    """The numbers of the messages of one producer, batch by batch."""
    starts = range(producer * BATCH, messages, PRODUCERS * BATCH)
    return [range(first, min(first + BATCH, messages)) for first in starts]
