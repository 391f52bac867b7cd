"""The loop: the pump turns, and trio runs in the same thread between turns; neither waits for the other."""

import os
import threading
import time
from collections.abc import Callable

import pytest
import trio

from rumq.loop.loop import Loop
from rumq.net.pump import Pump
from rumq.net.turn_handler import TurnHandler

SECONDS_MAX = 30.0  # a turn that waits so long for trio fails the test


class World(TurnHandler):
    """A pump without connections.

    timeouts: how long each turn was to wait; threads: in which they were made; idle: set before a turn that waits as
    long as nothing is due"""

    def __init__(self) -> None:
        self.timeouts: list[float] = []
        self.idle = threading.Event()
        self.threads: set[int] = set()
        self.pump = Recorded(self, self.timeouts, self.idle)
        self.loop = Loop(self.pump, self)

    def begin_turn(self) -> float:
        self.threads.add(threading.get_ident())
        return time.monotonic()

    def end_turn(self) -> None: ...

    def end_quiet_turn(self) -> None: ...

    def seconds_to_next_deadline(self) -> float:
        return SECONDS_MAX


class Recorded(Pump):
    def __init__(self, turns: TurnHandler, timeouts: list[float], idle: threading.Event) -> None:
        super().__init__(turns)
        self._timeouts, self._idle = timeouts, idle

    def turn(self, timeout: float) -> None:
        self._timeouts.append(timeout)
        if timeout == SECONDS_MAX:
            self._idle.set()
        super().turn(timeout)


def test_it_turns_until_main_has_returned() -> None:
    world = World()
    ran: list[int] = []

    async def main() -> None:
        await trio.lowlevel.checkpoint()
        ran.append(world.pump.turns)

    world.loop.run(main)
    turns = world.pump.turns
    assert len(ran) == 1 and 0 < ran[0] <= turns == len(world.timeouts)


def test_what_main_raises_comes_out() -> None:
    async def main() -> None:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError("main")

    with pytest.raises(ZeroDivisionError, match="main"):
        World().loop.run(main)


def test_trio_runs_in_the_thread_of_the_pump() -> None:
    world = World()
    threads = []

    async def main() -> None:
        await trio.lowlevel.checkpoint()
        threads.append(threading.get_ident())

    world.loop.run(main)
    assert {*threads} == world.threads == {threading.get_ident()}


@pytest.mark.parametrize("steps", [1, 20])
def test_a_task_of_many_steps_has_turns_between_them(steps: int) -> None:
    world = World()
    turns: list[int] = []

    async def main() -> None:
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
            turns.append(world.pump.turns)

    world.loop.run(main)
    assert len({*turns}) == steps, "a connection waits for one step of it at most"


def test_calls_that_come_meanwhile_wait_for_the_next_turn_and_the_turn_does_not_wait() -> None:
    world = World()
    called: list[tuple[str, int]] = []
    soon: Callable[[Callable[[], object]], None] = world.loop._soon

    def first() -> None:
        called.append(("first", world.pump.turns))
        soon(lambda: called.append(("second", world.pump.turns)))

    async def main() -> None:
        soon(first)
        while len(called) < 2:
            await trio.lowlevel.checkpoint()

    world.loop.run(main)
    (_, before), (_, after) = called
    assert after == before + 1
    assert world.timeouts[before] == 0.0, "the turn after one that left a call"


def test_a_thread_s_result_wakes_a_pump_that_waits() -> None:
    world = World()

    async def main() -> None:
        assert await trio.to_thread.run_sync(world.idle.wait, SECONDS_MAX), "it waits as long as nothing is due"

    began = time.monotonic()
    world.loop.run(main)
    assert time.monotonic() - began < SECONDS_MAX / 2, "the thread's result has ended the wait"


def test_its_descriptor_is_closed_at_the_end() -> None:
    world = World()
    fd = world.loop._fd
    os.fstat(fd)

    async def main() -> None: ...

    world.loop.run(main)
    with pytest.raises(OSError):
        os.fstat(fd)
