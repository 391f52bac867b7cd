"""The clock that retention goes by, told to the operator when it cannot be believed. docs/log-format.md, "Retention and
clocks"; the rules are `commitlog.clock_guard`'s. Reads no clock itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commitlog.clock_guard import ClockGuard
from rumq.shards.turn.ports import ReadPool


class ClockMonitor:
    """Looks at the clocks for every partition of a store."""

    def __init__(
        self, store: Any, writer: ReadPool, event: Callable[..., None], now_us: int, monotonic: float
    ) -> None:
        self._partitions = store.own
        self._writer = writer
        self._event = event
        self._governor = ClockGuard(store.newest_us, now_us, monotonic)
        self._told = ""

    def look(self, now_us: int, monotonic: float) -> int | None:
        """The time by which records are old, µs since 1970; None while no clock can be believed."""
        governor = self._governor
        jump = governor.look(now_us, monotonic)
        if jump is not None:
            self._event("clock.jumped", seconds=round(jump.seconds, 1))
        for partition in self._partitions:
            note = partition.look_at_clock(now_us, jump)
            if note is not None:
                self._writer.submit(note.run, noted, partition.index)
        if governor.held != self._told:
            self._told = governor.held
            self._event("retention.held" if self._told else "retention.resumed", why=self._told)
        return None if governor.held else now_us


def noted(_: Any, fault: BaseException | None) -> None:
    """What could not be written down is written with the next edit that can be; any other fault is a bug."""
    if fault is not None:
        raise fault
