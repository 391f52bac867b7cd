"""One pattern against one broker: instructions a message under callgrind, CPU time a message without.

CPU time is the scheduler's, exact to the nanosecond: ticks of 10 ms alias with bursts."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.connections import BenchFault
from bench.cost.callgrind import Counts, UnderCallgrind
from bench.cost.patterns import Pattern, clients_of
from bench.peers.peer import Broker
from bench.process import process_cpu_s

COUNTED_STEP_S = 0.012  # longer than records may linger: what follows a step is counted with it, and each is alone
WARM_STEPS = 12
LOOK_S = 0.0005


def instructions(broker: Broker, peer: UnderCallgrind, pattern: Pattern, steps: int) -> Counts:
    """What so many steps take, broker's turns before and after each included. raises: BenchFault, OSError"""
    pid = pid_of(broker)
    with on_one_core(pid):
        clients = clients_of(broker.address, pattern, lambda: settle(pid))
        try:
            peer.order(pid, "instrumentation", "on")
            paced(clients.step, WARM_STEPS * max(1, pattern.pairs // pattern.at_once // 3), COUNTED_STEP_S)
            peer.order(pid, "zero")
            paced(clients.step, steps, COUNTED_STEP_S)
            peer.order(pid, "dump")
            peer.order(pid, "instrumentation", "off")
        finally:
            clients.close()
    return peer.counted()


def cpu_us(broker: Broker, pattern: Pattern, seconds: float) -> float:
    """CPU time of the broker's process for each message, µs. raises: BenchFault, OSError"""
    pid, period_s = pid_of(broker), 1 / pattern.steps_per_s
    clients = clients_of(broker.address, pattern, lambda: None)
    try:
        paced(clients.step, max(1, int(0.2 / period_s)), period_s)
        steps = max(1, int(seconds / period_s))
        before = process_cpu_s(pid)
        paced(clients.step, steps, period_s)
        return (process_cpu_s(pid) - before) / (steps * pattern.messages) * 1e6
    finally:
        clients.close()


def paced(step: Callable[[], None], steps: int, period_s: float) -> None:
    """One step each period; one that took longer delays the next ones."""
    due = time.monotonic()
    for _ in range(steps):
        step()
        due = max(due + period_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


def settle(pid: int) -> None:
    """Wait until all threads of a process wait: it has done what was sent to it."""
    until = time.monotonic() + 60.0
    while any(state(task) not in "S" for task in Path(f"/proc/{pid}/task").iterdir()):
        if time.monotonic() > until:
            raise BenchFault("the broker does not come to rest")
        time.sleep(LOOK_S)


def state(task: Path) -> str:
    """R, S, D and so on; S for one that has gone. proc(5)"""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "S"


@contextlib.contextmanager
def on_one_core(pid: int) -> Iterator[None]:
    """Have a broker run where we do, and only while we wait: what a step sends is there when its turn begins.

    sched(7): a thread of SCHED_BATCH does not preempt the one that wakes it."""
    before = os.sched_getaffinity(0)
    core = {min(before)}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(task.name), core)
            os.sched_setscheduler(int(task.name), os.SCHED_BATCH, os.sched_param(0))
    os.sched_setaffinity(0, core)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def pid_of(broker: Broker) -> int:
    if broker.pid is None:
        raise BenchFault("a broker whose process is not known cannot be measured")
    return broker.pid
