"""What one run of a queue has shown."""

from __future__ import annotations

from typing import NamedTuple

PRODUCERS = CONSUMERS = 10
PAYLOAD_BYTES = 64
BATCH = 200  # messages that a producer has unacknowledged, and that a consumer takes at a time


class QueueRun(NamedTuple):
    """messages: pushed, acknowledged, consumed and acknowledged; seconds: from the first push to the last of these

    depth: messages that lay in the queue all the while"""

    messages: int
    seconds: float
    depth: int = 0

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


class Lost(RuntimeError):
    """Not every acknowledged message was consumed."""


def payload(number: int) -> bytes:
    return b"%d " % number + b"x" * (PAYLOAD_BYTES - len(b"%d " % number))


def number_of(found: bytes) -> int:
    return int(found[: found.index(b" ")])
