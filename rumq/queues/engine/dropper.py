"""Drops the oldest messages of queues that are full and whose rule is `drop-oldest`: of each channel that lags.

What is dropped is counted and told, never silent (event `queues.dropped`). docs/reference/queues.md, "Bounds"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import trio

from rumq.queues.engine.engines import Engines
from rumq.queues.engine.log_watch import QueueLogWatch
from rumq.queues.engine.sweep import AT_A_TIME, sweep
from rumq.queues.link.ports import QueuePorts
from rumq.queues.rules.definitions import ChannelDefinition, QueueDefinition
from rumq.queues.rules.errors import QueueError
from rumq.queues.rules.registry import QueueRegistry


class Dropper:
    """dropped: messages, by label, of every channel that lost one"""

    def __init__(
        self, ports: QueuePorts, engines: Engines, registry: Callable[[], QueueRegistry], watch: QueueLogWatch
    ) -> None:
        self._ports, self._engines, self._registry, self._watch = ports, engines, registry, watch
        self._nursery: trio.Nursery | None = None
        self._busy: set[str] = set()
        self.dropped = Counter[str]()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.sleep_forever()

    def drop(self, queue: QueueDefinition, wanted: int) -> None:
        """Make room for so many messages in each channel that has none for them."""
        assert self._nursery is not None, "`run` is not running"
        for channel in self._registry().channels_of(queue.label):
            excess = self._excess(queue, channel, wanted)
            if excess > 0 and channel.channel_id not in self._busy:
                self._busy.add(channel.channel_id)
                self._nursery.start_soon(self._drop_of, queue, channel, excess)

    def _excess(self, queue: QueueDefinition, channel: ChannelDefinition, wanted: int) -> int:
        """How many messages of a channel are too many, of those that it has not handed out."""
        since_us = max(queue.created_us, self._ports.now_us() - queue.ttl_seconds * 1_000_000)
        depths, label = self._watch.depths, queue.label
        left = depths.of_channel(channel.channel_id, label, channel.topic, since_us).records
        return min(left, left + max(0, depths.unseen[label]) + wanted - queue.records_max)

    async def _drop_of(self, queue: QueueDefinition, channel: ChannelDefinition, excess: int) -> None:
        """Until it is no more: others push meanwhile."""
        try:
            while excess > 0:
                consumer = self._engines.consumer(channel, min(AT_A_TIME, excess), lambda: None)
                try:
                    done = await sweep(consumer, self._ports.now_us(), excess, None)
                finally:
                    consumer.close()
                self._count(queue, channel, done)
                await self._watch.wait_fresh(0.0)
                excess = self._excess(queue, channel, 0)
        except QueueError:
            pass  # the next push asks again
        finally:
            self._busy.discard(channel.channel_id)

    def _count(self, queue: QueueDefinition, channel: ChannelDefinition, done: int) -> None:
        before = self.dropped[queue.label]
        self.dropped[queue.label] += done
        if before.bit_length() != (before + done).bit_length():
            # The 1st, 2nd, 4th, 8th ... of a queue: a flood of messages is none of events.
            self._ports.event(
                "queues.dropped", queue=queue.label, channel=channel.channel_id, records=before + done,
                records_max=queue.records_max,
            )  # fmt: skip
