"""What becomes of a channel's messages that failed: their tries are told to all engines, the dead are buried.

Tries are told one message at a time: what fails meanwhile is in the next one, so a flood of failures is none of
messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio

from rumq.queues.link.follower import DefinitionFollower
from rumq.queues.link.ports import QueuePorts
from rumq.queues.rules.channel_state import ChannelEntry, ChannelState, Effects
from rumq.queues.rules.definitions import ChannelDefinition
from rumq.queues.rules.errors import QueueError, QueuesUnavailable
from rumq.queues.rules.tries import OwnTries, tries_topic

BURY_AGAIN_SECONDS = 1.0
TRIES_SECONDS = 30 * 86400  # as long as any message lives
TELL_SECONDS = 0.1  # between two messages about tries

Bury = Callable[[ChannelDefinition, Sequence[ChannelEntry]], Awaitable[None]]


class Failures:
    def __init__(
        self,
        ports: QueuePorts,
        follower: DefinitionFollower,
        definition: ChannelDefinition,
        state: ChannelState,
        bury: Bury,
    ) -> None:
        """bury: makes dead letters of messages; raises QueueError"""
        self._ports, self._follower, self._definition, self._state = ports, follower, definition, state
        self._bury = bury
        self._tries = OwnTries(follower.tries.told_by(definition.channel_id, ports.name))
        self._topic = tries_topic(definition.label, definition.channel_id, ports.name)
        self._dead: list[ChannelEntry] = []
        self._burials = 0  # that are not over
        self._burial_over = trio.lowlevel.ParkingLot()
        self._is_telling = False

    @property
    def are_known(self) -> bool:
        """Of a message that waits, told by any engine; False: none has failed."""
        return self._follower.tries.are_known(self._definition.channel_id)

    def take(self, effects: Effects) -> None:
        until_us = self._ports.now_us() + TRIES_SECONDS * 1_000_000
        for message_id, tries in effects.failed.items():
            self._tries.put(message_id, tries, until_us)
        self._dead += effects.dead

    def start(self, lasting: trio.Nursery, nursery: trio.Nursery, done: Callable[[], None]) -> None:
        """Begin what is to be done. done: called after each burial

        lasting: for burials, which go on while the engine connects again, or ends: half of one makes two letters"""
        self._start_burial(lasting, done)
        if self._tries.changed and not self._is_telling:
            self._is_telling = True
            nursery.start_soon(self._keep_telling)

    def _start_burial(self, lasting: trio.Nursery, done: Callable[[], None]) -> None:
        if self._dead:
            dead, self._dead = self._dead, []
            self._burials += 1
            lasting.start_soon(self._bury_them, dead, done)

    async def end_burials(self, lasting: trio.Nursery) -> None:
        """Until all that is dead is a dead letter, or could not be made one."""
        self._start_burial(lasting, lambda: None)
        while self._burials:
            await self._burial_over.park()

    async def tell_last(self) -> None:
        if self._tries.changed:
            await self._tell()

    async def _bury_them(self, dead: list[ChannelEntry], done: Callable[[], None]) -> None:
        is_buried = False
        try:
            await self._bury(self._definition, dead)
            is_buried = True
        except QueueError as fault:
            self._ports.event("queues.dead_letters_wait", channel=self._definition.channel_id, why=str(fault)[:200])
        finally:
            if is_buried:
                self._state.buried(dead)
            else:
                self._state.unburied(dead, BURY_AGAIN_SECONDS, trio.current_time())
            self._burials -= 1
            self._burial_over.unpark_all()
            done()

    async def _keep_telling(self) -> None:
        try:
            while self._tries.changed:
                await self._tell()
                await trio.sleep(TELL_SECONDS)
        finally:
            self._is_telling = False

    async def _tell(self) -> None:
        told = self._tries.encoded(self._ports.now_us())
        try:
            await self._follower.publish(self._topic, told, expiry_seconds=TRIES_SECONDS)
        except QueuesUnavailable:
            pass  # the next change tells all of them again
