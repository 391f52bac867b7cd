"""Timers are called on the loop, each once, and one that raises ends nothing else."""

from collections.abc import Callable
from math import inf

from rumq.loop.scheduler import TIMED_CALLS_A_TURN, ShardClock, TimerQueue


class World:
    def __init__(self) -> None:
        self.seconds = 10.0
        self.clock = ShardClock(lambda: (round(self.seconds * 1e6), self.seconds))
        self.timers = TimerQueue(self.clock)
        self.called: list[str] = []

    def note(self, name: str) -> Callable[[], None]:
        return lambda: self.called.append(name)

    def guard(self, task: str, call: Callable[[], None]) -> None:
        call()

    def after(self, seconds: float) -> list[str]:
        self.seconds += seconds
        self.clock.tick()
        self.timers.run_due(self.guard)
        return self.called


def test_the_time_moves_between_turns_alone() -> None:
    world = World()
    world.seconds += 5
    assert world.clock.monotonic == 10.0
    world.clock.tick()
    assert (world.clock.monotonic, world.clock.now_us) == (15.0, 15_000_000)


def test_timers_of_the_same_time_are_called_in_the_order_in_which_they_were_set_the_same_call_too() -> None:
    world = World()
    calls = [world.note(f"{number}") for number in range(50)]
    for call in [*reversed(calls), calls[0]]:
        world.timers.later(1.0, call)
    world.after(1.0)
    for _ in range(51 // TIMED_CALLS_A_TURN):
        world.after(0.0)
    assert world.called == [*(f"{number}" for number in reversed(range(50))), "0"]


def test_a_timer_is_called_once_when_its_time_has_come() -> None:
    world = World()
    world.timers.later(2.0, world.note("second"))
    world.timers.later(1.0, world.note("first"))
    assert world.timers.next_deadline() == 11.0
    assert world.after(0.5) == []
    assert world.after(2.0) == ["first", "second"]
    assert world.timers.next_deadline() == inf


def test_a_crowd_of_timers_is_called_in_pieces_a_turn_each() -> None:
    """Clients over a rate all wait until the same moment: who publishes then is not behind all of them."""
    world = World()
    names = [f"{number}" for number in range(2 * TIMED_CALLS_A_TURN + 1)]
    for name in names:
        world.timers.later(1.0, world.note(name))
    assert world.after(1.0) == names[:TIMED_CALLS_A_TURN]
    deadline = world.timers.next_deadline()
    assert deadline <= world.clock.monotonic, "the next turn comes at once"
    assert world.after(0.0) == names[: 2 * TIMED_CALLS_A_TURN]
    assert world.after(0.0) == names and world.timers.next_deadline() == inf


def test_a_call_for_the_next_turn_that_asks_for_another_gets_the_one_after() -> None:
    world = World()

    def again() -> None:
        world.called.append("now")
        world.timers.next_turn(world.note("then"))

    world.timers.next_turn(again)
    world.timers.run_next_turn(world.guard)
    assert world.called == ["now"] and world.timers.has_next_turn
    world.timers.run_next_turn(world.guard)
    assert world.called == ["now", "then"] and not world.timers.has_next_turn
