"""The turn of an edge: no messages, no router; clients that are passed on, and bytes that are relayed."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable

from rumq.loop.fault_guard import ShardEvents
from rumq.loop.scheduler import ShardClock, TimerQueue
from rumq.net.connection import Connection
from rumq.net.turn_handler import TurnHandler

IDLE_SECONDS = 1.0  # between turns in which nothing is due


class EdgeTurn(TurnHandler):
    """Of an edge's pump."""

    def __init__(self, clock: ShardClock, timers: TimerQueue, events: ShardEvents) -> None:
        self._clock, self._timers, self._events = clock, timers, events
        self._stages: tuple[Callable[[], None], ...] = ()
        self._deadline: Callable[[], float] = lambda: 0.0

    def connect(self, stages: tuple[Callable[[], None], ...], deadline: Callable[[], float]) -> None:
        """Once, before the first turn. stages: what ends a turn; deadline: when one wants a turn, monotonic seconds"""
        self._stages, self._deadline = stages, deadline

    def begin_turn(self) -> float:
        self._clock.tick()
        self._timers.run_next_turn(self._events.alone)
        return self._clock.monotonic

    def end_turn(self) -> None:
        self._timers.run_due(self._events.alone)
        for end_turn in self._stages:
            self._events.alone("edge", end_turn)

    def end_quiet_turn(self) -> None:
        self.end_turn()

    def drained(self, connection: Connection) -> None:
        connection.link.drained()

    def crashed(self, connection: Connection) -> None:
        self._events.crashed(connection)

    def failed(self, task: str) -> None:
        self._events.failed(task)

    def seconds_to_next_deadline(self) -> float:
        if self._timers.has_next_turn:
            return 0.0
        due = self._timers.next_deadline()
        deadline = self._deadline() if due is None else min(due, self._deadline())
        return min(IDLE_SECONDS, max(0.0, deadline - self._clock.monotonic))
