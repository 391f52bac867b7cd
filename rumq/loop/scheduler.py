"""The time of a turn, and calls that are made later: after so many seconds, in the next turn, after the next step."""
# compiled: hot

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import inf

from rumq.loop.kernels import system_clock
from rumq.session.ports.clock import TurnClock

# Of a crowd that waits for the same moment: others' messages are not behind all of them.
TIMED_CALLS_A_TURN = 8

Call = Callable[[], None]
Guard = Callable[[str, Call], None]


def system_time() -> tuple[int, float]:
    """(µs since 1970, monotonic seconds)"""
    return system_clock.now_us(), system_clock.monotonic()


class ShardClock(TurnClock):
    """now_us, monotonic: as they were when the turn began"""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], tuple[int, float]] = system_time) -> None:
        """read: gives (µs since 1970, monotonic seconds)"""
        self._read = None if read is system_time else read
        super().__init__(*read())

    def tick(self) -> None:
        """A turn begins."""
        if self._read is not None:
            self.now_us, self.monotonic = self._read()
        else:
            self.now_us, self.monotonic = system_clock.now_us(), system_clock.monotonic()


class Lifecycle:
    """is_restored: sessions of an earlier run are here; stop_phase: of the five of a stop, 0: it does not stop"""

    __slots__ = ("is_restored", "stop_phase")

    def __init__(self) -> None:
        self.is_restored = False
        self.stop_phase = 0


class TimerQueue:
    """The `Timers` of a shard. guard: takes (task, call) and confines what the call raises"""

    __slots__ = ("_after_step", "_clock", "_count", "_later", "_next_turn")

    def __init__(self, clock: ShardClock) -> None:
        self._clock = clock
        self._later: list[tuple[float, int, Call]] = []
        self._count = 0
        self._next_turn: list[Call] = []
        self._after_step: list[Call] = []

    def later(self, seconds: float, call: Call) -> None:
        self._count += 1  # those that are due at the same time are made in order
        heapq.heappush(self._later, (self._clock.monotonic + seconds, self._count, call))

    def next_turn(self, call: Call) -> None:
        self._next_turn.append(call)

    def after_step(self, call: Call) -> None:
        self._after_step.append(call)

    # The turn's side

    @property
    def has_next_turn(self) -> bool:
        return self.waits()

    def waits(self) -> bool:
        """As `has_next_turn`, for compiled callers."""
        return bool(self._next_turn)

    def next_deadline(self) -> float:
        """When the next timed call is due, monotonic seconds; inf: there is none."""
        return self._later[0][0] if self._later else inf

    def run_next_turn(self, guard: Guard) -> None:
        if self._next_turn:
            calls, self._next_turn = self._next_turn, []
            for call in calls:
                guard("next turn", call)

    def run_due(self, guard: Guard) -> None:
        """Those that are left are due in the next turn, which comes at once."""
        left = TIMED_CALLS_A_TURN
        while left and self.next_deadline() <= self._clock.monotonic:
            left -= 1
            guard("timer", heapq.heappop(self._later)[2])

    def run_after_step(self, guard: Guard) -> None:
        while self._after_step:
            guard("after a step", self._after_step.pop())
