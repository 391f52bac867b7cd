"""Reads wait until the shard is known to have the newest; none waits that need not."""

from collections.abc import Callable

from rumq.loop.read_gate import LOOK_SECONDS, ReadGate


class Calls:
    """`Timers` by hand."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.calls.append((seconds, call))

    def next_turn(self, call: Callable[[], None]) -> None:
        self.later(0.0, call)

    def after_step(self, call: Callable[[], None]) -> None:
        raise AssertionError("not used")

    def run(self) -> None:
        calls, self.calls = self.calls, []
        for _, call in calls:
            call()


def test_an_open_gate_lets_reads_pass_at_once() -> None:
    timers, read = Calls(), []
    ReadGate(lambda: True, timers).when_open(lambda: read.append(1))
    assert read == [1] and not timers.calls


def test_reads_wait_in_order_and_one_timer_looks_for_all_of_them() -> None:
    timers, read, is_open = Calls(), [], False
    gate = ReadGate(lambda: is_open, timers)
    for number in range(3):
        gate.when_open(lambda number=number: read.append(number))
    assert [seconds for seconds, _ in timers.calls] == [LOOK_SECONDS]
    timers.run()
    assert not read and len(gate) == 3
    is_open = True
    timers.run()
    timers.run()
    assert read == [0, 1, 2] and not len(gate) and not timers.calls
