"""Consumers of channels over HTTP: each has a name, and keeps what it was given from one request to the next.

A consumer that asks no more ends by itself: a minute after its last request, or when what it holds is visible to others
again. They are bounded: of all, of a network, and of a token. docs/reference/gateway.md, "Consuming"."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from math import inf
from typing import NamedTuple, Protocol

import trio

from rumq.queues import ChannelInfo, Delivered, MessageId, NoSuchQueue, QueueError, QueuesUnavailable
from rumq.queues.rules.names import check_channel_id

IDLE_SECONDS = 60.0  # after the last request, of a consumer that holds nothing
BYTES_MAX = 4 << 20  # of payloads in an answer; one message always fits


class TooManyConsumers(Exception):
    """So many consumers of channels are there already."""


class Superseded(Exception):
    """A later request of the same consumer has come: it gets the messages."""


class Taker(Protocol):
    """A `rumq.queues.Consumer`."""

    async def next_batch(self, messages_max: int, wait_seconds: float) -> list[Delivered]: ...

    async def acknowledge(self, ids: Sequence[MessageId]) -> list[MessageId]: ...

    async def reject(self, ids: Sequence[MessageId], delay_seconds: float | None = None) -> list[MessageId]: ...

    async def extend(self, ids: Sequence[MessageId], seconds: float) -> list[MessageId]: ...


class Channels(Protocol):
    """What of `rumq.queues.Queues` consumers need."""

    async def channel(self, user: str, channel_id: str) -> ChannelInfo: ...

    def consume(self, user: str, channel_id: str, credit: int = 100) -> AbstractAsyncContextManager[Taker]: ...


class ConsumerHolder(NamedTuple):
    """Who consumes: nobody else can name its consumers. token: as the door knows it"""

    token_name: str
    token: Hashable
    user: str
    network: str


class HeldConsumer:
    """One consumer. scope: ends it; its deadline is set while no request of it is under way"""

    def __init__(self, holder: ConsumerHolder, channel_id: str, name: str) -> None:
        self.holder, self.channel_id, self.name = holder, channel_id, name
        self.scope = trio.CancelScope()
        self.ready = trio.Event()
        self.consumer: Taker | None = None
        self.fault: QueueError = QueuesUnavailable("the consumer has ended: ask again")
        self.label, self.visible_seconds = "", 0.0  # once it is ready
        self._rest: list[Delivered] = []  # given to it, and not in an answer yet
        self._requests = 0
        self._holds_until = 0.0  # by then what it holds is given to others
        self._poll: trio.CancelScope | None = None
        self._polls = trio.Lock()

    @contextmanager
    def asked(self) -> Iterator[None]:
        """While a request of it is under way."""
        self._requests += 1
        self.scope.deadline = inf
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self.scope.deadline = max(trio.current_time() + IDLE_SECONDS, self._holds_until)

    async def wait_consumer(self) -> Taker:
        """raises: QueueError"""
        await self.ready.wait()
        if self.consumer is None:
            raise self.fault
        return self.consumer

    async def take(self, messages_max: int, wait_seconds: float) -> list[Delivered]:
        """The next messages; of two requests at once the later one gets them. raises: QueueError, Superseded"""
        scope, earlier = trio.CancelScope(), self._poll
        self._poll = scope
        if earlier is not None:
            earlier.cancel()
        found: list[Delivered] = []
        async with self._polls:
            with scope:
                consumer = await self.wait_consumer()
                found = self._rest or list(await consumer.next_batch(messages_max, wait_seconds))
        if scope.cancelled_caught:
            raise Superseded(f"a later request of consumer {self.name!r} has come, which gets the messages")
        if self._poll is scope:
            self._poll = None
        if found:
            self._holds_until = trio.current_time() + self.visible_seconds
        count = fitting(found[:messages_max])
        self._rest = found[count:]
        return found[:count]

    async def extend(self, ids: Sequence[MessageId], seconds: float) -> list[MessageId]:
        """As of a `Consumer`."""
        consumer = await self.wait_consumer()
        others = await consumer.extend(ids, seconds)
        self._holds_until = max(self._holds_until, trio.current_time() + seconds)
        return others


def fitting(messages: Sequence[Delivered]) -> int:
    """How many of them an answer takes."""
    size = 0
    for number, message in enumerate(messages):
        size += len(message.payload)
        if size > BYTES_MAX and number:
            return number
    return len(messages)


class ChannelConsumers:
    """count_max: consumers at once, of which half may be of one network (an IPv4 address, an IPv6 /64), and half of one
    token. event: reports events"""

    def __init__(self, channels: Channels | None, count_max: int, event: Callable[..., None]) -> None:
        self._channels, self._event = channels, event
        self._count_max, self._share = count_max, max(1, count_max // 2)
        self._held: dict[tuple[str, str, str], HeldConsumer] = {}
        self._shares: Counter[tuple[str, str]] = Counter()
        self._nursery: trio.Nursery | None = None

    @property
    def count(self) -> int:
        return len(self._held)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hold the consumers until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.sleep_forever()

    def consumer(self, holder: ConsumerHolder, channel_id: str, name: str | None, credit: int) -> HeldConsumer:
        """The one of that name, or a new one. credit: of a new one. raises: TooManyConsumers, QueueError"""
        channel_id = check_channel_id(channel_id)
        name = name or secrets.token_urlsafe(12)
        key = holder.token_name, channel_id, name
        known = self._held.get(key)
        if known is not None and not known.scope.cancel_called:
            return known
        if known is not None:
            self.end(known)  # its time is over, and it is about to leave
        self._check_room(holder)
        if self._nursery is None:
            raise QueuesUnavailable("the gateway begins, or ends: ask again")
        held = self._held[key] = HeldConsumer(holder, channel_id, name)
        self._shares.update(shares_of(holder))
        self._nursery.start_soon(self._hold, held, credit)
        return held

    def known(self, holder: ConsumerHolder, channel_id: str, name: str) -> HeldConsumer:
        """raises: NoSuchQueue, BadQueueRequest"""
        held = self._held.get((holder.token_name, check_channel_id(channel_id), name))
        if held is None:
            raise NoSuchQueue(
                f"there is no consumer {name[:100]!r} of this token here: it has ended, and what it held is given to "
                "others; GET messages begins one"
            )
        return held

    def end(self, held: HeldConsumer) -> None:
        """What it holds is given to others."""
        key = held.holder.token_name, held.channel_id, held.name
        if self._held.get(key) is held:
            del self._held[key]
            self._shares.subtract(shares_of(held.holder))
            self._shares = +self._shares  # without those that hold none
        held.scope.cancel()

    def recheck(self, is_live: Callable[[Hashable], bool]) -> None:
        """End those of tokens that are gone, or other ones. is_live: of a holder's token"""
        for held in list(self._held.values()):
            if not is_live(held.holder.token):
                self.end(held)

    def _check_room(self, holder: ConsumerHolder) -> None:
        if len(self._held) >= self._count_max:
            raise TooManyConsumers(f"{len(self._held)} consumers are there already (gateway.consumers_max)")
        for share in shares_of(holder):
            if self._shares[share] >= self._share:
                raise TooManyConsumers(
                    f"{self._share} consumers of this {share[0]} are there already, half of gateway.consumers_max: "
                    "use one consumer for several requests, and end those that are not needed"
                )

    async def _hold(self, held: HeldConsumer, credit: int) -> None:
        """Until it ends by itself, or is ended."""
        user = held.holder.user
        assert self._channels is not None, "the endpoints ask for queues first"
        try:
            with held.scope:
                info = await self._channels.channel(user, held.channel_id)
                held.label = info.definition.label
                held.visible_seconds = info.definition.visible_seconds
                async with self._channels.consume(user, held.channel_id, credit) as consumer:
                    held.consumer = consumer
                    held.ready.set()
                    await trio.sleep_forever()
        except QueueError as fault:
            held.fault = fault
        except Exception:  # ours
            self._event("gateway.failed", exc_info=True)
        finally:
            held.consumer = None
            held.ready.set()
            self.end(held)


def shares_of(holder: ConsumerHolder) -> tuple[tuple[str, str], ...]:
    return ("network", holder.network), ("token", holder.token_name)
