"""Queues and channels for the doors of one process: define, push, consume, look, repair. docs/reference/queues.md

Every call names the user for whom it is, "" for anonymous, whom the door has authenticated; the rules of that user hold
(docs/reference/queues.md, "Permissions"). Names may be written in any case. Every call may raise `QueueError`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import trio

from rumq.auth.permit import Permit
from rumq.client.packet_stream import OpenStream
from rumq.queues.rules.definitions import ChannelSettings, QueueSettings
from rumq.queues.rules.messages import ChannelInfo, Delivered, Push, PushResult, QueueInfo
from rumq.queues.rules.names import MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What a process gives its queues.

    name: of this process among those of the broker or cluster, the same after a restart: "gateway", "grpc-n2"
    open_broker: a connection to the broker's own socket (`rumq.gateway.broker.broker_socket.open_broker`)
    permit_of: what a user may do; None: everything. event: reports events; now_us: µs since 1970"""

    name: str
    open_broker: OpenStream
    permit_of: Callable[[str], Permit | None]
    event: Callable[..., None]
    now_us: Callable[[], int]


class Consumer(Protocol):
    """One consumer of a channel, as `Queues.consume` gives it. It holds at most its credit of messages unanswered."""

    async def next_batch(self, messages_max: int, wait_seconds: float) -> list[Delivered]:
        """Wait for messages; none when the time is over. raises: NoSuchQueue once the channel is deleted"""

    async def acknowledge(self, ids: Sequence[MessageId]) -> list[MessageId]:
        """These are done. returns: those that this consumer does not hold (any more), which nothing was done with"""

    async def reject(self, ids: Sequence[MessageId], delay_seconds: float | None = None) -> list[MessageId]:
        """These failed: a try is counted, and they are given out again. returns: as `acknowledge`

        delay_seconds: before that; None: the channel's `retry_seconds`"""

    async def extend(self, ids: Sequence[MessageId], seconds: float) -> list[MessageId]:
        """Hold these for so long from now on. returns: as `acknowledge`"""


class Queues:
    """One for each process."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the definitions and hold the connections until cancelled; started once the definitions are known."""
        task_status.started()
        await trio.sleep_forever()

    # Define

    async def create_queue(self, user: str, label: str, settings: QueueSettings | None = None) -> QueueInfo:
        """raises: QueueExists with other settings; with the same, it is told as it is"""
        raise NotImplementedError

    async def delete_queue(self, user: str, label: str) -> None:
        """Its messages and channels with it, and nobody else's."""
        raise NotImplementedError

    async def queues(self, user: str) -> list[QueueInfo]:
        """Those that the user may push to, consume from or define, by label."""
        raise NotImplementedError

    async def queue(self, user: str, label: str) -> QueueInfo:
        raise NotImplementedError

    async def topics(self, user: str, label: str) -> list[str]:
        """Topics of the queue that channels name."""
        raise NotImplementedError

    async def create_channel(
        self, user: str, label: str, topic: str | None = None, settings: ChannelSettings | None = None,
        channel_id: str | None = None,
    ) -> ChannelInfo:  # fmt: skip
        """A channel sees what is pushed from now on. topic: None: all of the queue; channel_id: None: a new one

        raises: QueueExists where the id is taken; with the same label, topic and settings it is told as it is"""
        raise NotImplementedError

    async def delete_channel(self, user: str, channel_id: str) -> None:
        raise NotImplementedError

    async def channels(self, user: str, label: str | None = None) -> list[ChannelInfo]:
        """label: None: of every queue"""
        raise NotImplementedError

    async def channel(self, user: str, channel_id: str) -> ChannelInfo:
        raise NotImplementedError

    # Push and consume

    async def push(self, user: str, label: str, messages: Sequence[Push], *, with_ids: bool = True) -> list[PushResult]:
        """Push in order; returns, for each, once it is as safe as its stream promises, or why it was refused.

        with_ids: False: nobody looks for the ids, which is cheaper. raises: what holds for all of them"""
        raise NotImplementedError

    @asynccontextmanager
    async def consume(self, user: str, channel_id: str, credit: int = 100) -> AsyncIterator[Consumer]:
        """A consumer that holds at most `credit` messages. What it has not answered at the end is given to others."""
        raise NotImplementedError
        yield

    # Look and repair

    async def peek(
        self, user: str, label: str, topic: str | None = None, *, after_us: int = 0, messages_max: int = 20
    ) -> list[Delivered]:
        """Unexpired messages, oldest first, whoever consumes them. after_us: pushed later than that, µs since 1970"""
        raise NotImplementedError

    async def purge(self, user: str, channel_id: str) -> int:
        """Drop what the channel has not acknowledged. returns: how many messages"""
        raise NotImplementedError

    async def redrive(self, user: str, label: str, messages_max: int = 10_000) -> int:
        """Push the dead letters of a queue to where they came from. returns: how many messages"""
        raise NotImplementedError
