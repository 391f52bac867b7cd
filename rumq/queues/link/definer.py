"""Creates and deletes queues and channels: definitions that are retained, and anchors that hold the groups.

A definition comes before its anchor, and goes after it: whatever ends in between, `repair` at the next start of a
process finishes. Two processes that define the same thing at once: the later definition counts, and the other caller
is told so."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from rumq.queues.link.anchors import Anchors
from rumq.queues.link.follower import DefinitionFollower
from rumq.queues.link.ports import QueuePorts
from rumq.queues.rules.definitions import (
    ChannelDefinition,
    ChannelSettings,
    QueueDefinition,
    QueueSettings,
    checked_settings,
    encoded,
    fields_of,
    settings_of,
)
from rumq.queues.rules.errors import BadQueueRequest, NoSuchQueue, QueueError, QueueExists, QueueFull, shown
from rumq.queues.rules.names import DEAD, dead_label, share_filter
from rumq.queues.rules.registry import channel_topic, queue_topic
from rumq.queues.rules.tries import tries_topic

ID_BYTES = 13  # of a new channel id: nobody guesses it
OF_DEAD = ChannelSettings(tries_max=0, dead_letters="drop", visible_seconds=300.0)


class Definer:
    def __init__(self, ports: QueuePorts, follower: DefinitionFollower, anchors: Anchors) -> None:
        self._ports, self._follower, self._anchors = ports, follower, anchors

    async def create_queue(self, user: str, label: str, settings: QueueSettings) -> QueueDefinition:
        """raises: QueueExists, QueuesUnavailable, BadQueueRequest"""
        settings = checked_settings(settings)
        bounds = self._ports.bounds
        longest = bounds.lasting_seconds_max if label.endswith(DEAD) else bounds.ttl_seconds_max
        if settings.ttl_seconds > longest:
            name = "lasting_seconds_max" if label.endswith(DEAD) else "ttl_seconds_max"
            raise BadQueueRequest(f"ttl_seconds {settings.ttl_seconds}: expected at most {longest} (queues.{name})")
        self._follower.check_current()
        known = self._follower.registry.queues.get(label)
        if known is None:
            if len(self._follower.registry.queues) >= bounds.queues_max:
                raise QueueFull(f"there are {bounds.queues_max} queues and may be no more (queues.queues_max)")
            made = QueueDefinition(
                label=label, created_us=self._ports.now_us(), owner=user, **fields_of(settings, QueueSettings)
            )
            await self._follower.publish(queue_topic(label), encoded(made))
            await self._follower.wait(lambda registry: registry.queues.get(label) is not None)
            known = self._follower.registry.queues.get(label)
        if known is None or settings_of(known, QueueSettings) != settings:
            raise QueueExists(f"queue {shown(label)} is there, with other settings: {known}")
        return known

    async def create_channel(
        self, user: str, queue: QueueDefinition, topic: str | None, settings: ChannelSettings, channel_id: str | None
    ) -> ChannelDefinition:
        """raises: as `create_queue`"""
        settings = checked_settings(settings)
        self._follower.check_current()
        if settings.dead_letters == "queue" and settings.tries_max and not queue.label.endswith(DEAD):
            await self._create_dead(queue.label)
        wanted = channel_id or secrets.token_hex(ID_BYTES)
        known = self._follower.registry.channels.get(wanted)
        if known is None:
            most = self._ports.bounds.channels_max
            if len(self._follower.registry.channels) >= most:
                raise QueueFull(f"there are {most} channels and may be no more (queues.channels_max)")
            made = ChannelDefinition(
                channel_id=wanted, label=queue.label, topic=topic, created_us=self._ports.now_us(), owner=user,
                **fields_of(settings, ChannelSettings),
            )  # fmt: skip
            await self._follower.publish(channel_topic(queue.label, wanted), encoded(made))
            await self._follower.wait(lambda registry: wanted in registry.channels)
            known = self._follower.registry.channels.get(wanted)
        if (
            known is None
            or (known.label, known.topic) != (queue.label, topic)
            or settings_of(known, ChannelSettings) != settings
        ):
            raise QueueExists(f"channel {shown(wanted)} is there, for another queue or with other settings")
        # Also where it was known: whoever created it may have ended before the anchor was there.
        await self._anchors.hold([share_of(known)])
        if queue.label not in self._follower.registry.queues:
            await self.delete_channels([known])
            raise NoSuchQueue(f"queue {shown(queue.label)} was deleted meanwhile")
        return known

    async def _create_dead(self, label: str) -> None:
        """The queue of dead letters, and the channel that they are redriven from."""
        dead = dead_label(label)
        queue = self._follower.registry.queues.get(dead)
        if queue is None:
            settings = QueueSettings(ttl_seconds=self._ports.bounds.lasting_seconds_max, records_max=0)
            try:
                queue = await self.create_queue("", dead, settings)
            except QueueExists:
                queue = self._follower.registry.queues[dead]
        if dead not in self._follower.registry.channels:
            await self.create_channel("", queue, None, OF_DEAD, dead)

    async def delete_queue(self, queue: QueueDefinition) -> None:
        """raises: QueuesUnavailable: delete it again"""
        self._follower.check_current()
        await self.delete_channels(self._follower.registry.channels_of(queue.label))
        await self._follower.publish(queue_topic(queue.label), b"")
        await self._follower.wait(lambda registry: registry.queues.get(queue.label) != queue)

    async def delete_channels(self, channels: Sequence[ChannelDefinition]) -> None:
        """raises: QueuesUnavailable: delete them again"""
        self._follower.check_current()
        await self._anchors.let_go([share_of(each) for each in channels])
        for each in channels:
            for process in self._follower.tries.processes(each.channel_id):
                await self._follower.publish(tries_topic(each.label, each.channel_id, process), b"")
            await self._follower.publish(channel_topic(each.label, each.channel_id), b"")
        gone = {each.channel_id: each for each in channels}
        await self._follower.wait(
            lambda registry: all(registry.channels.get(name) != each for name, each in gone.items())
        )

    async def repair(self) -> None:
        """At a start: anchors that are missing, and channels whose queue is gone."""
        registry = self._follower.registry
        orphans = [each for each in registry.channels.values() if each.label not in registry.queues]
        try:
            if orphans:
                await self.delete_channels(orphans)
            await self._anchors.hold([share_of(each) for each in registry.channels.values()])
        except QueueError as fault:
            self._ports.event("queues.unavailable", why=f"the anchors of channels are not checked: {fault}")


def share_of(channel: ChannelDefinition) -> str:
    return share_filter(channel.channel_id, channel.label, channel.topic)
