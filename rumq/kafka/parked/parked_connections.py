"""Connections at which nothing happens but the same Fetch again: one task answers all of them, at shared ticks.

They wait in an epoll set, and their repeated questions for a tick, without a turn of a task, a deadline or a parser for
each. docs/decisions/0080-idle-consumers-are-parked.md"""

from __future__ import annotations

import select

import trio

from rumq.kafka.log.served_log import OLD_VIEW_SECONDS, KafkaLog
from rumq.kafka.parked.parked_connection import ParkedConnection, Unparked
from rumq.kafka.parked.shared_deadlines import TICKS_PER_SECOND, SharedDeadlines, tick_at

SERVED_MAX = 64  # before other tasks have their turn
MASK = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET


class ParkedConnections:
    """Of all clients. `run` is the task that answers."""

    def __init__(self, log: KafkaLog) -> None:
        self._log = log
        self._deadlines: SharedDeadlines[ParkedConnection] = SharedDeadlines()
        self._parked: dict[int, ParkedConnection] = {}  # by the descriptor
        self._epoll = select.epoll()

    def __len__(self) -> int:
        return len(self._parked)

    async def park(self, one: ParkedConnection) -> Unparked:
        """Until it has something to do by itself."""
        partitions = one.fetches.partitions
        self._epoll.register(one.descriptor, MASK)
        self._parked[one.descriptor] = one
        for partition in partitions:
            partition.wait_with(one.wake)
        try:
            return await one.wait()
        finally:
            one.resume(Unparked())
            for partition in partitions:
                partition.wait_no_longer_with(one.wake)
            one.forget()
            self._epoll.unregister(one.descriptor)
            del self._parked[one.descriptor]

    async def run(self) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._look)
            while True:
                if await self._serve():  # what comes next is taken together
                    await trio.sleep_until(tick_at(trio.current_time() + 0.5 / TICKS_PER_SECOND))
                else:
                    with trio.CancelScope(deadline=self._deadlines.next_at):
                        await trio.lowlevel.wait_readable(self._epoll.fileno())

    async def _serve(self) -> bool:
        """Whether there was anything to do."""
        ready: list[ParkedConnection] = []
        for descriptor, mask in self._epoll.poll(0):
            one = self._parked[descriptor]
            one.has_more = True
            one.has_ended |= mask != select.EPOLLIN
            ready.append(one)
        now = trio.current_time()
        served = ready + self._deadlines.take(now)
        for number, one in enumerate(served, 1):
            if one.serve(now):
                self._deadlines.add(one.due_at, one)
            if number % SERVED_MAX == 0:
                await trio.lowlevel.checkpoint()
        return bool(served)

    async def _look(self) -> None:
        """At what changes by itself: the log's beginning, and who is idle for too long."""
        while True:
            await trio.sleep(OLD_VIEW_SECONDS)
            if not self._parked:
                continue
            try:
                await self._log.look(OLD_VIEW_SECONDS)
            except OSError:
                for one in self._parked.values():
                    one.fetches.forget()  # who asks again is told by its own look
            now = trio.current_time()
            for one in list(self._parked.values()):
                one.leave_if_idle(now)
