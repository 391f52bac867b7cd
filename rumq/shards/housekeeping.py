"""What a turn does by the clock: silent clients, sessions that expire, segments to remove, timers."""
# compiled: warm

from __future__ import annotations

import gc
from collections.abc import Callable

from rumq.loop.fault_guard import ShardEvents
from rumq.loop.scheduler import ShardClock, TimerQueue
from rumq.loop.stage import Stage
from rumq.session.state.registry import Registry
from rumq.shards.clients.broker import Broker
from rumq.shards.retention.segment_removal import SegmentRemover

TIDY_SECONDS = 1.0
# What is left of one is a cycle of some KiB, if it lasted longer than the collector counts young.
CONNECTIONS_A_COLLECTION = 20_000


class Housekeeping(Stage):
    """The first stage of a turn's end, once a deadline of it or of a timed call has come."""

    def __init__(
        self, clock: ShardClock, timers: TimerQueue, events: ShardEvents, broker: Broker, registry: Registry,
        removal: SegmentRemover, step: Callable[[], None],
    ) -> None:  # fmt: skip
        """step: has the router take what expired sessions put"""
        self._clock, self._timers, self._events = clock, timers, events
        self._broker, self._keep_alive, self._registry = broker, broker.keep_alive_monitor, registry
        self._expiry, self._removal, self._step = registry.deadlines, removal, step
        self._next_tidy = 0.0
        self._connections_before = 0

    def end_turn(self) -> None:
        monotonic = self._clock.monotonic
        if monotonic >= self._keep_alive.next_check:
            self._keep_alive.check(self._broker)
        if self._expiry.earliest() <= monotonic:
            for session in self._registry.expire(monotonic):
                self._events.tell("session.expired", client_id=session.client_id)
            self._step()
        if monotonic >= self._next_tidy:
            self._next_tidy = monotonic + TIDY_SECONDS
            if self._broker.welcomed - self._connections_before > CONNECTIONS_A_COLLECTION:
                self._connections_before = self._broker.welcomed
                gc.collect()
            self._removal.look()
        self._timers.run_due(self._events.alone)

    def next_deadline(self) -> float:
        deadline, expiry = self._keep_alive.next_check, self._expiry.earliest()
        return deadline if deadline < expiry else expiry
