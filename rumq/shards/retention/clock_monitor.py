"""The clock that retention goes by, reported when it cannot be trusted.

docs/reference/log-format.md, "Retention and clocks".
The rules are those of `commitlog.disk.clock_guard`."""

from __future__ import annotations

from commitlog import Store
from commitlog.disk.clock_guard import ClockGuard
from rumq.loop.ports import Clock, EventSink, ReadPool


class ClockMonitor:
    """Compares the clocks for every partition of a store."""

    def __init__(self, store: Store, writer: ReadPool, events: EventSink, clock: Clock) -> None:
        self._partitions = store.own
        self._writer = writer
        self._events = events
        self._guard = ClockGuard(store.newest_us, clock.now_us, clock.monotonic)
        self._reported = ""

    def look(self, now_us: int, monotonic: float) -> int | None:
        """The time by which records are old, µs since 1970; None while no clock can be trusted."""
        guard = self._guard
        jump = guard.look(now_us, monotonic)
        if jump is not None:
            self._events.tell("clock.jumped", seconds=round(jump.seconds, 1))
        for partition in self._partitions:
            note = partition.look_at_clock(now_us, jump)
            if note is not None:
                self._writer.submit(note.run, noted, partition.index)
        if guard.held != self._reported:
            self._reported = guard.held
            self._events.tell("retention.held" if self._reported else "retention.resumed", why=self._reported)
        return None if guard.held else now_us


def noted(_: None, fault: BaseException | None) -> None:
    """What could not be written is written with the next edit that can be; any other fault is a bug."""
    if fault is not None:
        raise fault
