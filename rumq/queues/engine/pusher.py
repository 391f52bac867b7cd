"""Pushes: checked, within the bound of their queue, published for their user, found in the log for their ids.

A queue is as deep as its slowest channel: what that has not handed out yet, and what was pushed here since the last
look. docs/reference/queues.md, "Bounds"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import trio

from rumq.client import Outgoing
from rumq.queues.engine.log_watch import ID_SECONDS, DepthWatch
from rumq.queues.engine.push_places import UNPLACED, PushPlaces
from rumq.queues.engine.pushes import check, checked_topic, outgoing
from rumq.queues.kernels.push_frames import PushFrames
from rumq.queues.link.connections import Connections, nothing, refusal_of
from rumq.queues.link.ports import QueuePorts
from rumq.queues.link.push_batches import PushBatch
from rumq.queues.link.push_link import FrameBuilder, encoded_topic
from rumq.queues.rules.definitions import QueueDefinition
from rumq.queues.rules.depths import Depth, summed
from rumq.queues.rules.errors import QueueError, QueueFull, shown
from rumq.queues.rules.messages import Push, PushResult
from rumq.queues.rules.names import message_topic
from rumq.queues.rules.permissions import QueuePermit
from rumq.queues.rules.registry import QueueRegistry

LEEWAY_SECONDS = 30.0  # a delayed message is in the log so much longer, at least
FRESH_SECONDS = 60.0  # a first push waits for a look; later ones go by the last one


class Pusher:
    """pushed, refused, dropped: messages, by label"""

    def __init__(
        self, ports: QueuePorts, connections: Connections, watch: DepthWatch, registry: Callable[[], QueueRegistry],
        drop: Callable[[QueueDefinition, int], None], check_delayed: Callable[[int], None],
    ) -> None:  # fmt: skip
        """drop: have so many of a queue's oldest messages dropped

        check_delayed: raises QueueFull where no more may wait for their time"""
        self._ports, self._connections, self._watch, self._registry = ports, connections, watch, registry
        self._drop, self._check_delayed = drop, check_delayed
        self.pushed, self.refused = Counter[str](), Counter[str]()
        connections.on_end = watch.ids.forget

    async def push(
        self, user: str, queue: QueueDefinition, permit: QueuePermit, messages: Sequence[Push], *, with_ids: bool,
        on_put: Callable[[], None] = nothing,
    ) -> list[PushResult]:  # fmt: skip
        """raises: QueuesUnavailable. on_put: as of `Queues.push`"""
        link = await self._connections.link(user, is_located=with_ids)
        self._watch.ask()
        room = await self._room(queue, len(messages))
        results: list[PushResult] = [UNPLACED] * len(messages)
        now, later = _Part(), _Part()
        checked: dict[str | None, str] = {}
        encoded: dict[str | None, bytes] = {}
        now_us = self._ports.now_us()
        waiting = messages if isinstance(messages, list) else list(messages)
        number = 0
        while number < len(waiting):
            most = min(len(waiting), number + room - len(now) - len(later))
            stop = now.frames.take(waiting, number, most, encoded, queue.ttl_seconds, link.packet_bytes_max)
            now.numbers += range(number, stop)
            if stop == len(waiting):
                break
            number, push = stop, waiting[stop]
            # One that the kernel left: the first of its topic, or one that waits, or one that may be wrong.
            try:
                topic = checked.get(push.topic)
                if topic is None:
                    topic = checked_topic(push)
                    permit.check_push(queue.label, topic)
                    checked[push.topic] = topic
                    encoded[push.topic] = encoded_topic(message_topic(queue.label, topic))
                check(push, self._ports.bounds.lasting_seconds_max - LEEWAY_SECONDS)
                if push.delay_seconds:
                    self._check_delayed(len(later) + 1)
                message = outgoing(queue, topic, push, now_us, link.packet_bytes_max)
                if len(now) + len(later) >= room:
                    raise self._full(queue, len(now) + len(later))
                (later if push.delay_seconds else now).add(number, message)
            except QueueError as fault:
                self.refused[queue.label] += isinstance(fault, QueueFull)
                results[number] = fault
            number += 1
        if not now.numbers:
            on_put()
        places = None
        if with_ids and now.numbers:
            topics = [checked[waiting[each].topic] for each in now.numbers]
            places = PushPlaces(queue.label, topics, now.numbers, results)
        await self._publish(user, queue, now, results, places, on_put)
        await self._publish(user, queue, later, results, None)
        return results

    async def _publish(
        self, user: str, queue: QueueDefinition, part: _Part, results: list[PushResult], places: PushPlaces | None,
        on_put: Callable[[], None] = nothing,
    ) -> None:  # fmt: skip
        """places: where their ids go; None: nobody looks for them"""
        if not part.numbers:
            return
        is_located = places is not None
        link = await self._connections.link(user, is_located=is_located)

        def acknowledged(batch: PushBatch, first: int, stop: int) -> None:
            assert places is not None
            places.expect(self._watch.ids, link.client_id, first, stop, trio.current_time() + ID_SECONDS)

        batch = PushBatch(part.frames, None if places is None else acknowledged, queue.label)
        # From now on they may be in the log. Where the connection breaks the count is too high for a while.
        self._watch.depths.unseen[queue.label] += len(part)
        await self._connections.put(user, batch, is_located=is_located, on_put=on_put)
        self.pushed[queue.label] += len(part) - len(batch.refused)
        self._watch.depths.unseen[queue.label] -= len(batch.refused)
        for at, (reason, why) in batch.refused.items():
            results[part.numbers[at]] = refusal_of(reason, why)
        if places is not None and not places.are_known(len(batch.refused)):
            self._watch.ask()
            await places.done.wait()

    # Bounds

    async def _room(self, queue: QueueDefinition, wanted: int) -> int:
        """How many messages may be pushed now. Of a queue that drops its oldest, all: room is made."""
        if not queue.records_max and not queue.bytes_max:
            return wanted
        await self._watch.wait_fresh(FRESH_SECONDS)
        room = self._room_of(queue, wanted)
        if room < wanted:
            # What was pushed since the last look may be consumed already.
            await self._watch.wait_fresh(0.0)
            room = self._room_of(queue, wanted)
        if room < wanted and queue.when_full == "drop-oldest":
            self._drop(queue, wanted - max(room, 0))
            return wanted
        return max(room, 0)

    def _room_of(self, queue: QueueDefinition, wanted: int) -> int:
        depth = self.depth(queue)
        room = queue.records_max - depth.records if queue.records_max else wanted
        return 0 if queue.bytes_max and depth.size >= queue.bytes_max else min(room, wanted)

    def _full(self, queue: QueueDefinition, more: int) -> QueueFull:
        """more: messages that are about to be pushed"""
        depth = summed([self.depth(queue), Depth(more)])
        bound = queue.records_max or queue.bytes_max
        return QueueFull(
            f"queue {shown(queue.label)} has {depth.records} messages ({depth.size} bytes) that its slowest channel "
            f"has not consumed, and may have {queue.records_max or 'any number'} "
            f"({queue.bytes_max or 'any number of'} bytes): consume them, purge or delete that channel, or push later",
            depth.records,
            bound,
        )

    def depth(self, queue: QueueDefinition) -> Depth:
        """Behind its slowest channel; without channels all that is unexpired."""
        depths, label = self._watch.depths, queue.label
        since_us = self.since_us(queue)
        channels = self._registry().channels_of(label)
        if channels:
            found = [depths.of_channel(each.channel_id, label, each.topic, since_us) for each in channels]
            depth = max(found, key=lambda each: (each.records, each.size))
        else:
            depth = depths.of_queue(label, since_us)
        unseen = max(0, depths.unseen[label])  # since the last look, so the oldest of them came just now
        return summed([depth, Depth(unseen, 0, self._ports.now_us() if unseen else 0)])

    def since_us(self, queue: QueueDefinition) -> int:
        """What came before is nobody's."""
        return max(queue.created_us, self._ports.now_us() - queue.ttl_seconds * 1_000_000)


class _Part:
    """Messages that go out together. numbers: of the caller's"""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.frames = PushFrames()
        self._builder = FrameBuilder(self.frames)

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, number: int, message: Outgoing) -> None:
        self.numbers.append(number)
        self._builder.add(message)
