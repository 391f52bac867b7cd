"""Batches of messages that are pushed over one connection, and which of them is sent next: queues take turns.

Of one queue they go in the order in which they were put. No sockets, no clock."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import trio

from rumq.client import ClientError
from rumq.mqtt.reasons import Reason
from rumq.queues.kernels.push_frames import PushFrames

TURN_BYTES = 1 << 14  # of one queue, before another is sent something; one message always is


class SentPiece(NamedTuple):
    """Messages of a batch: the first, one behind the last."""

    batch: PushBatch
    first: int
    stop: int


class PushBatch:
    """Messages put together. lane: whose turn it is; refused: by number; fault: of those that were not answered

    acknowledged: called with the numbers first and behind the last of some, in the order of sending"""

    __slots__ = ("acknowledged", "done", "fault", "frames", "lane", "left", "refused")

    def __init__(
        self, frames: PushFrames, acknowledged: Callable[[PushBatch, int, int], None] | None = None, lane: str = ""
    ) -> None:
        self.frames, self.acknowledged, self.lane = frames, acknowledged, lane
        self.left = len(frames)
        self.refused: dict[int, tuple[Reason, str]] = {}
        self.fault: ClientError | None = None
        self.done = trio.Event()
        if not self.left:
            self.done.set()

    def answered(self, number: int, reason: Reason, why: str) -> None:
        if not reason.is_error:
            self.accepted(number, number + 1)
            return
        self.refused[number] = reason, why
        self.left -= 1
        if not self.left:
            self.done.set()

    def accepted(self, first: int, stop: int) -> None:
        self.left -= stop - first
        if self.acknowledged is not None:
            self.acknowledged(self, first, stop)
        if not self.left:
            self.done.set()

    def failed(self, fault: ClientError) -> None:
        self.fault = fault
        self.done.set()


class WaitingBatches:
    """Those of which not everything was sent."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, deque[tuple[PushBatch, int]]] = OrderedDict()  # batch, its next number

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def __iter__(self) -> Iterator[PushBatch]:
        return (batch for waiting in self._lanes.values() for batch, _ in waiting)

    def put(self, batch: PushBatch) -> None:
        self._lanes.setdefault(batch.lane, deque()).append((batch, 0))

    def next_piece(self, count_max: int) -> SentPiece:
        """What is sent now, of the queue whose turn it is; one has to wait. count_max: messages, at least 1"""
        lane, waiting = self._lanes.popitem(last=False)
        batch, first = waiting.popleft()
        stop = batch.frames.stop_of(first, count_max, TURN_BYTES)
        if stop < len(batch.frames):
            waiting.appendleft((batch, stop))
        if waiting:
            self._lanes[lane] = waiting  # behind the others
        return SentPiece(batch, first, stop)

    def clear(self) -> None:
        self._lanes.clear()
