"""The thread of a shard: the pump is the loop, and trio is its guest.

Waking a trio task costs more than a whole turn of the pump, so the pump waits for the sockets itself. Everything
that is not hot (signals, stopping, timers of services) is ordinary trio code, run in the same thread between turns
(trio's guest mode). Measured in docs/decisions/0001-trio-is-the-guest.md."""
# compiled: hot

from __future__ import annotations

import os
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from rumq.net.pump import Pump
from rumq.net.turn_handler import TurnHandler


class Loop:
    """Turns of one pump, with a trio main function beside it."""

    def __init__(self, pump: Pump, turns: TurnHandler) -> None:
        """turns: the pump's; asked how long a turn may wait"""
        self._pump, self._turns = pump, turns
        self._calls: deque[Callable[[], object]] = deque()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        pump.watch(self._fd, self._awake)

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Turn until `main` has returned; raises what it raised."""
        outcomes: list[Any] = []
        trio.lowlevel.start_guest_run(
            main,
            run_sync_soon_threadsafe=self._soon,
            done_callback=outcomes.append,
            restrict_keyboard_interrupt_to_checkpoints=True,
        )
        while not outcomes:
            self._pump.turn(0.0 if self._calls else self._turns.seconds_to_next_deadline())
            if self._calls:
                for _ in range(len(self._calls)):
                    self._calls.popleft()()
        self._pump.unwatch(self._fd)
        os.close(self._fd)
        outcomes[0].unwrap()

    def _soon(self, call: Callable[[], object]) -> None:
        self._calls.append(call)
        os.eventfd_write(self._fd, 1)

    def _awake(self) -> None:
        os.eventfd_read(self._fd)
