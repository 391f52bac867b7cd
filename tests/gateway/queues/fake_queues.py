"""Queues in memory, for tests of the door alone: names, bounds and errors are those of `rumq.queues`, nothing lasts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from rumq.gateway.queues.queue_rows import settings_from
from rumq.queues import (
    ChannelDefinition,
    ChannelFigures,
    ChannelInfo,
    ChannelSettings,
    Delivered,
    MessageId,
    NoSuchQueue,
    Push,
    Pushed,
    PushResult,
    QueueDefinition,
    QueueError,
    QueueExists,
    QueueFigures,
    QueueFull,
    QueueInfo,
    QueueNotAllowed,
    QueueSettings,
)
from rumq.queues.rules.names import check_channel_id, check_label, check_topic, share_filter

NOW_US = 1_800_000_000_000_000


class FakeChannel:
    """waiting: not given out; held: by id, with who holds it"""

    def __init__(self, definition: ChannelDefinition) -> None:
        self.definition = definition
        self.waiting: list[Delivered] = []
        self.held: dict[MessageId, Any] = {}
        self.given: dict[MessageId, Delivered] = {}
        self.consumers = 0
        self.came = trio.Event()
        self.is_gone = False

    def offer(self, message: Delivered) -> None:
        self.waiting.append(message)
        self.wake()

    def wake(self) -> None:
        self.came.set()
        self.came = trio.Event()


class FakeConsumer:
    def __init__(self, channel: FakeChannel, credit: int) -> None:
        self._channel, self._credit = channel, credit

    async def next_batch(self, messages_max: int, wait_seconds: float) -> list[Delivered]:
        channel = self._channel
        with trio.move_on_after(wait_seconds):
            while not (channel.waiting and self._room) and not channel.is_gone:
                await channel.came.wait()
        if channel.is_gone:
            raise NoSuchQueue("the channel was deleted")
        count = min(messages_max, self._room)
        found, channel.waiting = channel.waiting[:count], channel.waiting[count:]
        for message in found:
            channel.held[message.id], channel.given[message.id] = self, message
        return found

    @property
    def _room(self) -> int:
        return self._credit - sum(each is self for each in self._channel.held.values())

    async def acknowledge(self, ids: Sequence[MessageId]) -> list[MessageId]:
        return [each for each in ids if not self._release(each)]

    async def reject(self, ids: Sequence[MessageId], delay_seconds: float | None = None) -> list[MessageId]:
        others = []
        for each in ids:
            if self._release(each):
                message = self._channel.given[each]
                self._channel.offer(message._replace(tries=message.tries + 1))
            else:
                others.append(each)
        return others

    async def extend(self, ids: Sequence[MessageId], seconds: float) -> list[MessageId]:
        return [each for each in ids if self._channel.held.get(each) is not self]

    def end(self) -> None:
        for each, holder in list(self._channel.held.items()):
            if holder is self:
                self._release(each)
                self._channel.offer(self._channel.given[each])

    def _release(self, message_id: MessageId) -> bool:
        if self._channel.held.get(message_id) is not self:
            return False
        del self._channel.held[message_id]
        self._channel.wake()
        return True


class FakeQueues:
    """forbidden: users that may nothing"""

    def __init__(self, forbidden: Sequence[str] = ()) -> None:
        self.defined: dict[str, QueueDefinition] = {}
        self.log: dict[str, list[Delivered]] = {}
        self.own_channels: dict[str, FakeChannel] = {}
        self.forbidden = forbidden

    def _check(self, user: str) -> None:
        if user in self.forbidden:
            raise QueueNotAllowed(f"not permitted: the rules do not let user {user}")

    def _label(self, user: str, label: str) -> str:
        self._check(user)
        label = check_label(label)
        if label not in self.defined:
            raise NoSuchQueue(f"there is no queue {label!r}")
        return label

    def _channel(self, user: str, channel_id: str) -> FakeChannel:
        self._check(user)
        channel_id = check_channel_id(channel_id)
        if channel_id not in self.own_channels:
            raise NoSuchQueue(f"there is no channel {channel_id!r}")
        return self.own_channels[channel_id]

    async def create_queue(self, user: str, label: str, settings: QueueSettings | None = None) -> QueueInfo:
        self._check(user)
        label, settings = check_label(label), settings or QueueSettings()
        known = self.defined.get(label)
        if known is not None and settings_from(known, QueueSettings) != settings:
            raise QueueExists(f"queue {label!r} is there already, with other settings")
        fields = {name: getattr(settings, name) for name in QueueSettings.__struct_fields__}
        self.defined.setdefault(label, QueueDefinition(label=label, created_us=NOW_US, owner=user, **fields))
        self.log.setdefault(label, [])
        return await self.queue(user, label)

    async def delete_queue(self, user: str, label: str) -> None:
        label = self._label(user, label)
        del self.defined[label], self.log[label]
        for each in [each for each in self.own_channels.values() if each.definition.label == label]:
            await self.delete_channel(user, each.definition.channel_id)

    async def queues(self, user: str) -> list[QueueInfo]:
        return [] if user in self.forbidden else [await self.queue(user, label) for label in sorted(self.defined)]

    async def queue(self, user: str, label: str) -> QueueInfo:
        label = self._label(user, label)
        own = [each for each in self.own_channels.values() if each.definition.label == label]
        depth = max((len(each.waiting) + len(each.held) for each in own), default=len(self.log[label]))
        channels = tuple(each.definition.channel_id for each in own)
        return QueueInfo(self.defined[label], QueueFigures(depth_records=depth, pushed=len(self.log[label])), channels)

    async def topics(self, user: str, label: str) -> list[str]:
        label = self._label(user, label)
        own = (each.definition for each in self.own_channels.values())
        return sorted({each.topic for each in own if each.label == label and each.topic is not None})

    async def create_channel(
        self, user: str, label: str, topic: str | None = None, settings: ChannelSettings | None = None,
        channel_id: str | None = None,
    ) -> ChannelInfo:  # fmt: skip
        label, settings = self._label(user, label), settings or ChannelSettings()
        topic = None if topic is None else check_topic(topic)
        channel_id = check_channel_id(channel_id or f"c{len(self.own_channels) + 1}")
        known = self.own_channels.get(channel_id)
        if known is not None:
            if (known.definition.label, known.definition.topic, settings_from(known.definition, ChannelSettings)) != (
                label, topic, settings,
            ):  # fmt: skip
                raise QueueExists(f"channel {channel_id!r} is there already, with other settings")
            return await self.channel(user, channel_id)
        fields = {name: getattr(settings, name) for name in ChannelSettings.__struct_fields__}
        definition = ChannelDefinition(
            channel_id=channel_id, label=label, created_us=NOW_US, topic=topic, owner=user, **fields
        )
        self.own_channels[channel_id] = FakeChannel(definition)
        return await self.channel(user, channel_id)

    async def delete_channel(self, user: str, channel_id: str) -> None:
        channel = self._channel(user, channel_id)
        channel.is_gone = True
        channel.wake()
        del self.own_channels[channel.definition.channel_id]

    async def channels(self, user: str, label: str | None = None) -> list[ChannelInfo]:
        if label is not None:
            label = self._label(user, label)
        return [
            await self.channel(user, each)
            for each, known in self.own_channels.items()
            if user not in self.forbidden and label in (None, known.definition.label)
        ]

    async def channel(self, user: str, channel_id: str) -> ChannelInfo:
        channel = self._channel(user, channel_id)
        given = channel.definition
        depth = len(channel.waiting) + len(channel.held)
        figures = ChannelFigures(depth_records=depth, consumers=channel.consumers, in_flight=len(channel.held))
        return ChannelInfo(given, figures, share_filter(given.channel_id, given.label, given.topic))

    async def push(self, user: str, label: str, messages: Sequence[Push], *, with_ids: bool = True) -> list[PushResult]:
        label = self._label(user, label)
        return [self._pushed(label, each, with_ids=with_ids) for each in messages]

    def _pushed(self, label: str, push: Push, *, with_ids: bool) -> PushResult:
        definition, log = self.defined[label], self.log[label]
        try:
            topic = check_topic(push.topic)
        except QueueError as fault:
            return fault
        if definition.records_max and len(log) >= definition.records_max:
            bound = definition.records_max
            return QueueFull(f"queue {label!r} has {len(log)} messages, its bound is {bound}", len(log), bound)
        number = 1 + sum(each.id.topic == topic for each in log)
        message = Delivered(
            MessageId(topic, number), push.payload, 1, NOW_US + len(log), push.key, push.headers, push.content_type
        )
        log.append(message)
        for channel in self.own_channels.values():
            if channel.definition.label == label and channel.definition.topic in (None, topic):
                channel.offer(message)
        return Pushed(message.id if with_ids else None)

    @asynccontextmanager
    async def consume(self, user: str, channel_id: str, credit: int = 100) -> AsyncIterator[FakeConsumer]:
        channel = self._channel(user, channel_id)
        consumer = FakeConsumer(channel, credit)
        channel.consumers += 1
        try:
            yield consumer
        finally:
            channel.consumers -= 1
            consumer.end()

    async def peek(
        self, user: str, label: str, topic: str | None = None, *, after_us: int = 0, messages_max: int = 20
    ) -> list[Delivered]:
        label = self._label(user, label)
        wanted = None if topic is None else check_topic(topic)
        found = [
            each._replace(tries=0)
            for each in self.log[label]
            if each.pushed_us > after_us and wanted in (None, each.id.topic)
        ]
        return found[:messages_max]

    async def purge(self, user: str, channel_id: str) -> int:
        channel = self._channel(user, channel_id)
        count, channel.waiting = len(channel.waiting), []
        return count

    async def redrive(self, user: str, label: str, messages_max: int = 10_000) -> int:
        dead = self.log.get(f"{self._label(user, label)}.dead", [])
        moved = dead[:messages_max]
        del dead[:messages_max]
        for each in moved:
            await self.push(user, label, [Push(payload=each.payload)])
        return len(moved)
