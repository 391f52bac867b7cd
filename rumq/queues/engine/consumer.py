"""One consumer of a channel: takes messages by its credit, answers each. `rumq.queues.Queues.consume` gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from rumq.queues.engine.channel_engine import ChannelEngine
from rumq.queues.rules.definitions import ChannelDefinition
from rumq.queues.rules.errors import BadQueueRequest
from rumq.queues.rules.messages import Delivered
from rumq.queues.rules.names import MessageId

CHECK_SECONDS = 1.0  # rules that change hold after so long
EXTEND_SECONDS_MAX = 86_400.0
DELAY_SECONDS_MAX = 86_400.0
ANY_BYTES = 1 << 62


class Consumer:
    """It holds at most its credit of messages that are not answered. For one task."""

    def __init__(self, engine: ChannelEngine, credit: int, check: Callable[[], None]) -> None:
        """check: raises QueueError where the user may not consume any more"""
        self._engine, self._check = engine, check
        self._checked_at = trio.current_time()
        self._holder = engine.join(credit)

    @property
    def channel(self) -> ChannelDefinition:
        return self._engine.definition

    async def next_batch(self, messages_max: int, wait_seconds: float, bytes_max: int = ANY_BYTES) -> list[Delivered]:
        """Wait for messages; none when the time is over. bytes_max: of them, about; one message always fits

        raises: NoSuchQueue once the channel is deleted, QueueNotAllowed, QueuesUnavailable: consume again"""
        if messages_max < 1:
            raise BadQueueRequest(f"messages_max {messages_max}: expected at least 1")
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(max(0.0, wait_seconds)):
            while True:
                if found := self._take(messages_max, bytes_max):
                    return found
                await self._engine.changed.park()
        return self._take(messages_max, bytes_max)

    def _take(self, messages_max: int, bytes_max: int) -> list[Delivered]:
        self._look()
        found = self._engine.state.take(self._holder, messages_max, trio.current_time(), bytes_max)
        if found or self._engine.state.has_effects:
            self._engine.work()
        return found

    def _look(self) -> None:
        now = trio.current_time()
        if self._engine.ended is not None:
            raise self._engine.ended
        if now - self._checked_at >= CHECK_SECONDS:
            self._check()
            self._checked_at = now

    async def acknowledge(self, ids: Sequence[MessageId]) -> list[MessageId]:
        """These are done. returns: those that it does not hold (any more): nothing was done with them"""
        return await self._answer(self._engine.state.acknowledge(self._holder, ids, trio.current_time()))

    async def reject(self, ids: Sequence[MessageId], delay_seconds: float | None = None) -> list[MessageId]:
        """These failed: a try is counted, and they are given out again. returns: as `acknowledge`

        delay_seconds: before that; None: the channel's `retry_seconds`"""
        if delay_seconds is not None and not 0 <= delay_seconds <= DELAY_SECONDS_MAX:
            raise BadQueueRequest(f"delay_seconds {delay_seconds}: expected 0 to {DELAY_SECONDS_MAX:g}")
        return await self._answer(self._engine.state.reject(self._holder, ids, delay_seconds, trio.current_time()))

    async def extend(self, ids: Sequence[MessageId], seconds: float) -> list[MessageId]:
        """Hold these for so long from now on. returns: as `acknowledge`"""
        if not 0 < seconds <= EXTEND_SECONDS_MAX:
            raise BadQueueRequest(f"seconds {seconds}: expected up to {EXTEND_SECONDS_MAX:g}")
        return await self._answer(self._engine.state.extend(self._holder, ids, seconds, trio.current_time()))

    async def _answer(self, strangers: list[MessageId]) -> list[MessageId]:
        self._engine.wake()
        await trio.lowlevel.checkpoint()
        return strangers

    def give_back(self) -> None:
        """What it holds goes to others, and no try is counted: it was not looked at."""
        self._engine.state.give_back(self._holder, trio.current_time())
        self._engine.wake()

    def close(self) -> None:
        """What it has not answered counts as failed."""
        self._engine.leave(self._holder, trio.current_time())
