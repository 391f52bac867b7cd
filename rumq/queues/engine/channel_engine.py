"""The engine of one channel: a member of its shared group while it has consumers, which it serves by their credit.

Its session lasts some seconds beyond its connection: a shard, or this process, that is killed and back within them
finds every message where it was. Its window is as wide as its consumers' credit, so that it keeps nothing from members
elsewhere. When the last consumer leaves it ends the session, and what is not done goes to other members."""

from __future__ import annotations

from collections.abc import Callable

import trio

from rumq.auth.credentials.vouched import BROKERS_PASSWORD
from rumq.client import ClientError, Refused
from rumq.mqtt.packets import Publish
from rumq.mqtt.reasons import Reason
from rumq.queues.engine.failures import Bury, Failures
from rumq.queues.link.follower import DefinitionFollower
from rumq.queues.link.member_link import MemberLink, MemberLogin
from rumq.queues.link.ports import QueuePorts
from rumq.queues.rules.channel_state import ChannelHolder, ChannelState
from rumq.queues.rules.definitions import ChannelDefinition
from rumq.queues.rules.errors import QueueError, QueuesUnavailable
from rumq.queues.rules.names import share_filter
from rumq.queues.rules.packets import NoPlace, delivered, expiry_of

SESSION_SECONDS = 10  # that messages wait for a process that was killed, before others get them
BACK_OFF_SECONDS, BACK_OFF_SECONDS_MAX = 0.05, 1.0
BACK_OFF_GROWTH = 1.5  # twice as much would add half of a change of leaders, which takes some 0.3 s, to each gap
WINDOW_MAX = 32_000  # messages: the broker's in-flight window is no wider
SLACK = 8  # beyond the credit: of messages that wait for a retry
LEAVE_SECONDS_MAX = 2.0


class ChannelEngine:
    """definition: of its channel; ended: why it is over, for its consumers"""

    def __init__(
        self, ports: QueuePorts, definition: ChannelDefinition, follower: DefinitionFollower, bury: Bury,
        bytes_max: Callable[[], int],
    ) -> None:  # fmt: skip
        """bury: as of `Failures`; bytes_max: of messages that it may hold now, beyond which the broker keeps them"""
        self._ports, self._bytes_max = ports, bytes_max
        self.definition = definition
        channel_id, process = definition.channel_id, ports.name
        self.state = ChannelState(definition, lambda each: follower.tries.of(channel_id, each))
        self._failures = Failures(ports, follower, definition, self.state, bury)
        # Of an ordered channel one engine at a time is a member, whatever its process: the last one that came.
        client_id = f"$ordered/{channel_id}" if definition.is_ordered else f"$engine/{process}/{channel_id}"
        self._login = MemberLogin(client_id, BROKERS_PASSWORD, SESSION_SECONDS)
        self._connection = trio.CancelScope()
        self._window = 0
        self._strays: list[int] = []  # packet ids of what cannot be a message of the channel
        self.changed = trio.lowlevel.ParkingLot()  # messages for consumers, or the end
        self._work = trio.Event()  # effects to carry out, or another time to wait for
        self._room = trio.lowlevel.ParkingLot()  # for messages from the broker
        self.gone = trio.Event()
        self.ended: QueueError | None = None
        self._scope = trio.CancelScope()

    # Its consumers

    def join(self, credit: int) -> ChannelHolder:
        holder = self.state.join(credit)
        if self._wanted_window() > self._window:
            self._reopen()
        return holder

    def leave(self, holder: ChannelHolder, now: float) -> None:
        self.state.leave(holder, now)
        if not self.state.holders:
            self._scope.cancel()
        elif self._wanted_window() < self._window // 4:
            self._reopen()
        self.wake()

    def work(self) -> None:
        """Carry out what the state asks for."""
        self._work.set()
        self._room.unpark_all()

    def wake(self) -> None:
        """The state has changed: carry out what it asks for, and let consumers look."""
        self.work()
        self.changed.unpark_all()

    def end(self, why: QueueError) -> None:
        """Its channel is gone, or is served elsewhere."""
        self.ended = self.ended or why
        self._scope.cancel()

    @property
    def is_leaving(self) -> bool:
        return self._scope.cancel_called or self.ended is not None

    def _wanted_window(self) -> int:
        credit = sum(holder.credit for holder in self.state.holders)
        # Of an ordered channel messages that are behind one with their key wait here, before those with another.
        return min(WINDOW_MAX, (10 if self.definition.is_ordered else 1) * (credit + credit // 4 + SLACK))

    def _reopen(self) -> None:
        """With another window, in the same session."""
        self._connection.cancel()

    # Its task

    async def run(self) -> None:
        """Until the last consumer has left, or the channel is gone. Raises nothing that is expected."""
        try:
            async with trio.open_nursery() as lasting:
                with self._scope:
                    await self._keep_serving(lasting)
                lasting.cancel_scope.cancel()
        finally:
            self.ended = self.ended or QueuesUnavailable("the channel's engine has ended: consume again")
            self.changed.unpark_all()
            self.gone.set()

    async def _keep_serving(self, lasting: trio.Nursery) -> None:
        delay = BACK_OFF_SECONDS
        while True:
            began = trio.current_time()
            if await self._serve(lasting):
                delay = BACK_OFF_SECONDS
                continue
            if trio.current_time() - began > BACK_OFF_SECONDS_MAX:
                delay = BACK_OFF_SECONDS
            await trio.sleep(delay)
            delay = min(BACK_OFF_GROWTH * delay, BACK_OFF_SECONDS_MAX)

    async def _serve(self, lasting: trio.Nursery) -> bool:
        """One connection. returns: whether it ended because another window is wanted"""
        link: MemberLink | None = None
        self._connection = trio.CancelScope()
        self._window = self._wanted_window()
        try:
            with self._connection:
                link = await MemberLink.open(self._ports.open_broker, self._login, self._window, takes_messages=True)
                if not link.is_resumed:
                    self.state.forget()
                channel = self.definition
                share = share_filter(channel.channel_id, channel.label, channel.topic)
                await link.subscribe([share], tells_place=True)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(link.keep_alive)
                    nursery.start_soon(self._carry_out, link, lasting, nursery)
                    await self._read(link)
        except* ClientError as faults:
            for fault in leaves_of(faults):
                self._lost(fault)
        finally:
            if link is not None:
                await self._close(link, lasting)
        return self._connection.cancelled_caught

    def _lost(self, fault: BaseException) -> None:
        if isinstance(fault, Refused) and fault.reason_code == Reason.SESSION_TAKEN_OVER:
            self.end(QueuesUnavailable("another process serves this ordered channel now: consume there"))
        else:
            self._ports.event("queues.channel_waits", channel=self.definition.channel_id, why=str(fault)[:200])

    async def _close(self, link: MemberLink, lasting: trio.Nursery) -> None:
        """At the end of the engine with its session; else the next connection goes on with it."""
        if not self._scope.cancel_called:
            await link.close()
            return
        with trio.move_on_after(LEAVE_SECONDS_MAX) as scope:
            scope.shield = True
            tokens = self._take_effects()
            if self.ended is None:  # else they are gone, or those of another process
                await self._failures.end_burials(lasting)
            try:
                await link.acknowledge(tokens + self._take_effects())
            except ClientError:
                pass  # they come again, to others
            await self._failures.tell_last()
        await link.leave(ends_session=True)

    async def _read(self, link: MemberLink) -> None:
        while True:
            # Its consumers are slow, or messages large: the rest waits in the log, for whoever takes it.
            while self.state.size > self._bytes_max():
                await self._room.park()
            messages, others = await link.receive()
            now = trio.current_time()
            may_have_failed = self._failures.are_known
            self.state.arrived_all(messages, now, may_have_failed=may_have_failed)
            for each in others:
                self._arrived(each, now)
            self.wake()

    def _arrived(self, packet: Publish, now: float) -> None:
        assert packet.packet_id is not None
        try:
            self.state.arrived(delivered(packet), packet.packet_id, now, expiry_of(packet))
        except NoPlace:
            # Never of what doors push; it is none of ours, and must not come for ever.
            self._strays.append(packet.packet_id)

    async def _carry_out(self, link: MemberLink, lasting: trio.Nursery, nursery: trio.Nursery) -> None:
        """Acknowledgements, tries, dead letters and visible times, as they come."""
        while True:
            self._work = trio.Event()
            tokens = self._take_effects()
            self._failures.start(lasting, nursery, self.wake)
            await link.acknowledge(tokens)
            next_at = self.state.next_at
            with trio.move_on_at(float("inf") if next_at is None else next_at):
                await self._work.wait()
            if self.state.advance(trio.current_time()):
                self.changed.unpark_all()

    def _take_effects(self) -> list[int]:
        """What the state asks for; returns what is to be acknowledged."""
        effects = self.state.drain()
        self._failures.take(effects)
        tokens, self._strays = self._strays + effects.tokens, []
        return tokens


def leaves_of(group: BaseExceptionGroup[ClientError]) -> list[BaseException]:
    found: list[BaseException] = []
    for each in group.exceptions:
        found += leaves_of(each) if isinstance(each, BaseExceptionGroup) else [each]
    return found
