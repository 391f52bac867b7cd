"""The engines of one process: one for each channel that has consumers here."""

from __future__ import annotations

from collections.abc import Callable

import trio

from rumq.queues.engine.channel_engine import ChannelEngine
from rumq.queues.engine.consumer import Consumer
from rumq.queues.engine.failures import Bury
from rumq.queues.link.follower import DefinitionFollower
from rumq.queues.link.ports import QueuePorts
from rumq.queues.rules.definitions import ChannelDefinition
from rumq.queues.rules.errors import NoSuchQueue, QueueFull, shown

ENGINES_MAX = 10_000
CONSUMERS_MAX = 1000  # of one channel
BYTES_MAX, SHARES_MIN = 256 << 20, 4  # of messages that engines hold: all of them; one has a quarter at most


class Engines:
    def __init__(self, ports: QueuePorts, follower: DefinitionFollower, bury: Bury) -> None:
        self._ports, self._follower, self._bury = ports, follower, bury
        self._running: dict[str, ChannelEngine] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the engines until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.sleep_forever()

    def bytes_of_each(self) -> int:
        """What each may hold now. One message, and what came with it, always fits."""
        return BYTES_MAX // max(SHARES_MIN, len(self._running))

    def maybe_engine(self, channel_id: str) -> ChannelEngine | None:
        return self._running.get(channel_id)

    def consumer(self, channel: ChannelDefinition, credit: int, check: Callable[[], None]) -> Consumer:
        """raises: QueueFull. check: as of `Consumer`"""
        engine = self._running.get(channel.channel_id)
        if engine is None or engine.is_leaving:
            if len(self._running) >= ENGINES_MAX:
                raise QueueFull(f"{ENGINES_MAX} channels are consumed here: consume at another node")
            assert self._nursery is not None, "`run` is not running"
            previous = engine
            engine = ChannelEngine(self._ports, channel, self._follower, self._bury, self.bytes_of_each)
            self._running[channel.channel_id] = engine
            self._nursery.start_soon(self._run, engine, previous)
        elif len(engine.state.holders) >= CONSUMERS_MAX:
            raise QueueFull(f"channel {shown(channel.channel_id)} has {CONSUMERS_MAX} consumers here")
        return Consumer(engine, credit, check)

    async def _run(self, engine: ChannelEngine, previous: ChannelEngine | None) -> None:
        if previous is not None:
            await previous.gone.wait()  # it has the same session
        try:
            await engine.run()
        finally:
            if self._running.get(engine.definition.channel_id) is engine:
                del self._running[engine.definition.channel_id]

    def definitions_changed(self) -> None:
        """End the engines of channels that are gone, or are others now."""
        for channel_id, engine in list(self._running.items()):
            if self._follower.registry.channels.get(channel_id) != engine.definition:
                engine.end(NoSuchQueue(f"channel {shown(channel_id)} was deleted"))
