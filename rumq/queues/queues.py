"""Queues and channels for the doors of one process: define, push, consume, look, repair. docs/reference/queues.md

Every call names the user for whom it is, "" for anonymous, whom the door has authenticated; the rules of that user hold
(docs/reference/queues.md, "Permissions"). Names may be written in any case. Every call may raise `QueueError`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from itertools import islice

import trio

from rumq.auth.permit import Permit
from rumq.queues.engine.consumer import Consumer
from rumq.queues.engine.dead_letters import DeadLetters, revived
from rumq.queues.engine.delays import Delays
from rumq.queues.engine.dropper import Dropper
from rumq.queues.engine.engines import Engines
from rumq.queues.engine.log_watch import DepthWatch
from rumq.queues.engine.pusher import Pusher
from rumq.queues.engine.sweep import AT_A_TIME, sweep
from rumq.queues.link.anchors import Anchors
from rumq.queues.link.connections import Connections, nothing, refusal_of
from rumq.queues.link.definer import Definer
from rumq.queues.link.follower import DefinitionFollower
from rumq.queues.link.ports import QueuePorts
from rumq.queues.link.queue_places import QueuePlaces, places_of
from rumq.queues.reading.peek import peek
from rumq.queues.rules.definitions import ChannelDefinition, ChannelSettings, QueueDefinition, QueueSettings
from rumq.queues.rules.errors import BadQueueRequest, NoSuchQueue, QueuesUnavailable, shown
from rumq.queues.rules.messages import (
    ChannelFigures,
    ChannelInfo,
    Delivered,
    Push,
    PushResult,
    QueueFigures,
    QueueInfo,
)
from rumq.queues.rules.names import (
    channel_filter,
    check_channel_id,
    check_label,
    check_topic,
    dead_label,
    folded,
    share_filter,
)
from rumq.queues.rules.permissions import QueuePermit
from rumq.queues.rules.registry import QueueRegistry

PEEK_MAX = 1000
PUSH_MAX = 10_000
CREDIT_MAX = 10_000
TOLD_SECONDS = 0.5  # figures are told that are no older

Do = Callable[[list[Delivered]], Awaitable[None]]


class Queues:
    """One for each process."""

    def __init__(self, ports: QueuePorts) -> None:
        self._ports = ports
        self._follower = DefinitionFollower(ports, self._changed)
        self._connections = Connections(ports)
        self._anchors = Anchors(ports)
        self._definer = Definer(ports, self._follower, self._anchors)
        self._dead = DeadLetters(self._connections, lambda label: self._follower.registry.queues.get(label))
        self._engines = Engines(ports, self._follower, self._dead.bury)
        self._watch = DepthWatch(ports, self._connections.prefix, self._connections.located_prefix, self._ttl_us)
        self._dropper = Dropper(ports, self._engines, self._registry, self._watch)
        self._delays = Delays(ports, self._anchors, self._connections, self._registry)
        self._pusher = Pusher(
            ports, self._connections, self._watch, self._registry, self._dropper.drop, self._delays.check_room
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the definitions and hold the connections until cancelled; started once the definitions are known."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._connections.run)
            await nursery.start(self._engines.run)
            await nursery.start(self._follower.run)
            nursery.start_soon(self._watch.run)
            nursery.start_soon(self._delays.run)
            await nursery.start(self._dropper.run)
            nursery.start_soon(self._definer.repair)
            task_status.started()

    def _registry(self) -> QueueRegistry:
        return self._follower.registry

    def _ttl_us(self) -> int:
        """The longest time to live in use."""
        queues = self._registry().queues.values()
        return 1_000_000 * max((each.ttl_seconds for each in queues), default=0)

    def _changed(self) -> None:
        self._engines.definitions_changed()

    # Define

    async def create_queue(self, user: str, label: str, settings: QueueSettings | None = None) -> QueueInfo:
        """raises: QueueExists with other settings; with the same, it is told as it is"""
        label = check_label(label)
        self._permit(user).check_define(label)
        await self._follower.wait_current()
        return self._queue_info(await self._definer.create_queue(user, label, settings or QueueSettings()))

    async def delete_queue(self, user: str, label: str) -> None:
        """Its messages and channels with it, and nobody else's."""
        queue = await self._told(user, label)
        self._permit(user).check_define(queue.label)
        await self._definer.delete_queue(queue)

    async def queues(self, user: str, part: str = "", after: str = "", count_max: int | None = None) -> list[QueueInfo]:
        """Those that the user may push to, consume from or define, by label. part: of it; after: labels behind this"""
        permit = self._permit(user)
        await self._follower.wait_current()
        await self._watch.wait_fresh(TOLD_SECONDS)
        known = self._follower.registry.queues
        part = folded(part)
        labels = sorted(label for label in known if label > after and part in label)
        told = islice((label for label in labels if permit.is_told(label)), count_max)
        return [self._queue_info(known[label]) for label in told]

    async def queue(self, user: str, label: str) -> QueueInfo:
        queue = await self._told(user, label)
        await self._watch.wait_fresh(TOLD_SECONDS)
        return self._queue_info(queue)

    async def topics(self, user: str, label: str) -> list[str]:
        """Topics of the queue that channels name, or that lately had messages."""
        queue = await self._told(user, label)
        await self._watch.wait_fresh(TOLD_SECONDS)
        named = {each.topic for each in self._registry().channels_of(queue.label) if each.topic is not None}
        return sorted(named | set(self._watch.depths.topics(queue.label)))

    async def create_channel(
        self, user: str, label: str, topic: str | None = None, settings: ChannelSettings | None = None,
        channel_id: str | None = None,
    ) -> ChannelInfo:  # fmt: skip
        """A channel sees what is pushed from now on. topic: None: all of the queue; channel_id: None: a new one

        raises: QueueExists where the id is taken; with the same label, topic and settings it is told as it is"""
        queue = await self._told(user, label)
        seen = None if topic is None else check_topic(topic)
        self._permit(user).check_define(queue.label)
        self._permit(user).check_consume(queue.label, seen)
        wanted = None if channel_id is None else check_channel_id(channel_id)
        made = await self._definer.create_channel(user, queue, seen, settings or ChannelSettings(), wanted)
        return self._channel_info(made)

    async def delete_channel(self, user: str, channel_id: str) -> None:
        channel = await self._told_channel(user, channel_id)
        self._permit(user).check_define(channel.label)
        await self._definer.delete_channels([channel])

    async def channels(
        self, user: str, label: str | None = None, after: str = "", count_max: int | None = None
    ) -> list[ChannelInfo]:
        """By id. label: None: of every queue; after: ids behind it"""
        await self._follower.wait_current()
        await self._watch.wait_fresh(TOLD_SECONDS)
        registry = self._follower.registry
        if label is not None:
            found = registry.channels_of((await self._told(user, label)).label)
        else:
            permit = self._permit(user)
            told = {each for each in registry.ids_of if permit.is_told(each)}
            found = [each for each in registry.channels.values() if each.label in told]
        found = sorted((each for each in found if each.channel_id > after), key=lambda each: each.channel_id)
        return [self._channel_info(each) for each in found[:count_max]]

    async def channel(self, user: str, channel_id: str) -> ChannelInfo:
        channel = await self._told_channel(user, channel_id)
        await self._watch.wait_fresh(TOLD_SECONDS)
        return self._channel_info(channel)

    # Push and consume

    async def push(
        self, user: str, label: str, messages: Sequence[Push], *, with_ids: bool = True,
        on_put: Callable[[], None] = nothing,
    ) -> list[PushResult]:  # fmt: skip
        """Push in order; returns, for each, once it is as safe as its stream promises, or why it was refused.

        with_ids: False: nobody looks for the ids, which is cheaper. raises: what holds for all of them
        on_put: called once they have their place before pushes that begin later, unless it raises before"""
        queue = await self._told(user, label)
        if len(messages) > PUSH_MAX:
            raise BadQueueRequest(f"{len(messages)} messages: expected at most {PUSH_MAX} at a time")
        return await self._pusher.push(user, queue, self._permit(user), messages, with_ids=with_ids, on_put=on_put)

    @asynccontextmanager
    async def consume(self, user: str, channel_id: str, credit: int = 100) -> AsyncIterator[Consumer]:
        """A consumer that holds at most `credit` messages. What it has not answered at the end is given to others."""
        consumer = await self.consumer(user, channel_id, credit)
        try:
            yield consumer
        finally:
            consumer.close()

    async def consumer(self, user: str, channel_id: str, credit: int = 100) -> Consumer:
        """As `consume`, for who closes it."""
        if not 1 <= credit <= CREDIT_MAX:
            raise BadQueueRequest(f"credit {credit}: expected 1 to {CREDIT_MAX} messages")
        channel = await self._told_channel(user, channel_id)
        self._permit(user).check_consume(channel.label, channel.topic)

        def check() -> None:
            self._permit(user).check_consume(channel.label, channel.topic)

        return self._engines.consumer(channel, credit, check)

    # What users may, and are told

    def for_caller(self, permit_of: Callable[[str], Permit | None]) -> Queues:
        """The same queues, for a door that knows more of its caller than a name. permit_of: as of `QueuePorts`"""
        view = copy(self)
        view._ports = replace(self._ports, permit_of=permit_of)
        return view

    @property
    def is_current(self) -> bool:
        """Whether the broker answers, as far as is known without asking."""
        return self._follower.is_current

    def count(self, user: str) -> int:
        """Queues that the user is told of, as they are known. Never waits."""
        permit = self._permit(user)
        return sum(permit.is_told(label) for label in self._follower.registry.queues)

    def check_consume(self, user: str, channel: ChannelDefinition) -> None:
        """raises: QueueNotAllowed"""
        self._permit(user).check_consume(channel.label, channel.topic)

    def _permit(self, user: str) -> QueuePermit:
        return QueuePermit(user, self._ports.permit_of(user))

    async def _told(self, user: str, label: str) -> QueueDefinition:
        """raises: NoSuchQueue, also where the user may not know that there is one"""
        label = check_label(label)
        await self._follower.wait_shortly(lambda registry: label in registry.queues)
        found = self._follower.registry.queues.get(label)
        if found is None or not self._permit(user).is_told(label):
            raise NoSuchQueue(f"there is no queue {shown(label)}: create it, or ask for the list of queues")
        return found

    async def _told_channel(self, user: str, channel_id: str) -> ChannelDefinition:
        """raises: as `_told`"""
        channel_id = check_channel_id(channel_id)
        await self._follower.wait_shortly(lambda registry: channel_id in registry.channels)
        found = self._follower.registry.channels.get(channel_id)
        if found is None or not self._permit(user).is_told(found.label):
            raise NoSuchQueue(f"there is no channel {shown(channel_id)}: create it, or ask for the list of channels")
        return found

    def _queue_info(self, queue: QueueDefinition) -> QueueInfo:
        ids = tuple(sorted(self._follower.registry.ids_of.get(queue.label, ())))
        depth, label = self._pusher.depth(queue), queue.label
        figures = QueueFigures(
            depth.records, depth.size, depth.oldest_us, self._pusher.pushed[label], self._pusher.refused[label],
            self._dropper.dropped[label],
        )  # fmt: skip
        return QueueInfo(queue, figures, ids)

    def _channel_info(self, channel: ChannelDefinition) -> ChannelInfo:
        engine = self._engines.maybe_engine(channel.channel_id)
        queue = self._registry().queues.get(channel.label)
        since_us = channel.created_us if queue is None else self._pusher.since_us(queue)
        depth = self._watch.depths.of_channel(channel.channel_id, channel.label, channel.topic, since_us)
        figures = ChannelFigures(depth.records)
        if engine is not None:
            counts = engine.state.counts
            state = engine.state
            figures = ChannelFigures(
                depth.records + len(state), len(state.holders), state.in_flight, counts.acknowledged, counts.rejected,
                counts.dead,
            )  # fmt: skip
        return ChannelInfo(channel, figures, share_filter(channel.channel_id, channel.label, channel.topic))

    # Look and repair

    async def rebuild(self, user: str, label: str) -> QueuePlaces:
        """Read the definitions again, hold what is not held, and ask every shard where the queue's messages may lie.

        raises: QueuesUnavailable"""
        permit = self._permit(user)
        was_stale = permit.may_define(check_label(label)) and await self._follower.read_again()
        queue = await self._told(user, label)
        permit.check_define(queue.label)
        await self._definer.repair()
        partitions, missing = await places_of(self._ports, queue.label)
        return QueuePlaces(await self.queue(user, label), partitions, missing, was_stale)

    async def peek(
        self, user: str, label: str, topic: str | None = None, *, after_us: int = 0, messages_max: int = 20
    ) -> list[Delivered]:
        """Unexpired messages, oldest first, whoever consumes them. after_us: pushed later than that, µs since 1970"""
        queue = await self._told(user, label)
        seen = None if topic is None else check_topic(topic)
        self._permit(user).check_peek(queue.label, seen)
        if not 1 <= messages_max <= PEEK_MAX:
            raise BadQueueRequest(f"messages_max {messages_max}: expected 1 to {PEEK_MAX}")
        now_us = self._ports.now_us()
        begin_us = max(after_us, queue.created_us, now_us - queue.ttl_seconds * 1_000_000)

        def look() -> list[Delivered]:
            wanted = channel_filter(queue.label, seen)
            return peek(self._ports.views(), wanted, begin_us, now_us, messages_max)

        try:
            return await trio.to_thread.run_sync(look)
        except OSError as fault:
            raise QueuesUnavailable(f"the log cannot be read: {fault.strerror or fault}") from None

    async def purge(self, user: str, channel_id: str) -> int:
        """Drop what the channel has, but what consumers hold. returns: how many messages"""
        channel = await self._told_channel(user, channel_id)
        self._permit(user).check_define(channel.label)
        self._permit(user).check_consume(channel.label, channel.topic)
        return await self._sweep(channel, 1 << 62, None)

    async def _sweep(self, channel: ChannelDefinition, messages_max: int, do: Do | None) -> int:
        consumer = self._engines.consumer(channel, AT_A_TIME, lambda: None)
        try:
            return await sweep(consumer, self._ports.now_us(), messages_max, do)
        finally:
            consumer.close()

    async def redrive(self, user: str, label: str, messages_max: int = 10_000) -> int:
        """Push the dead letters of a queue to where they came from. returns: how many messages"""
        queue = await self._told(user, label.removesuffix(".dead"))
        self._permit(user).check_define(queue.label)
        channel = self._follower.registry.channels.get(dead_label(queue.label))
        if channel is None:
            raise NoSuchQueue(f"queue {shown(queue.label)} has no dead letters: none of its channels keeps them")

        async def push_back(batch: list[Delivered]) -> None:
            refused = await self._connections.publish(None, [revived(each, queue) for each in batch])
            for reason, why in refused.values():
                raise refusal_of(reason, why)

        return await self._sweep(channel, messages_max, push_back)
