"""One run: a fresh broker, the others in one process, a neighbour in another; quiet, harm, quiet."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import msgspec

from bench import process
from bench.connections import BenchFault
from bench.isolation.brokers import names_of
from bench.isolation.lives import Messages, Timeline, Times, figures_of, timeline_of
from bench.isolation.neighbours import Neighbour
from bench.isolation.task import (
    PUBLISHERS,
    QOS1_PUBLISHERS,
    RATE,
    Did,
    Failed,
    Lived,
    NeighbourTask,
    OthersTask,
    Ready,
    Report,
)
from bench.measure.figures import Figures
from bench.peers.peer import Broker, environment

READY_S = 120.0
EXTRA_S = 30.0
KILL_EVERY_S = 1.2
# What the neighbour has left behind counts as its doing for so long.
SETTLE_S = 0.25


@dataclass(frozen=True, slots=True)
class Plan:
    """Seconds. warm: before anything is measured"""

    warm: float = 0.5
    before: float = 3.0
    during: float = 4.0
    after: float = 2.5

    @property
    def whole(self) -> float:
        return self.warm + self.before + self.during + SETTLE_S + self.after


class Side:
    """A process of the run that takes a task, says that it is ready, waits for a line, and reports."""

    def __init__(self, module: str, task: OthersTask | NeighbourTask) -> None:
        self.module = module
        self.process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
        )
        self.say(msgspec.json.encode(task))

    def __enter__(self) -> "Side":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Its work is done, or nobody wants it any more; its threads wait for sockets.
        self.process.kill()
        self.process.communicate()

    def say(self, line: bytes = b"") -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # hear() reads why

    def hear(self, seconds_max: float) -> Report:
        """raises: BenchFault when it failed, ended, or said nothing in time"""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds_max)[0]:
            raise BenchFault(f"{self.module}: no answer within {seconds_max:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise BenchFault(f"{self.module}: ended with {self.process.wait()}")
        report: Report = msgspec.json.decode(line, type=Report)
        if isinstance(report, Failed):
            raise BenchFault(report.why)
        return report


def run_beside(neighbour: Neighbour, broker: Broker, plan: Plan, trigger: Path) -> tuple[Figures, Timeline]:
    """raises: BenchFault, OSError"""
    assert broker.pid is not None
    others = OthersTask(
        address=broker.address,
        publisher_ids=names_of("other-p", PUBLISHERS, neighbour.shards),
        subscriber_ids=names_of("other-s", PUBLISHERS, neighbour.shards),
        topics=names_of("others/", PUBLISHERS, neighbour.shards),
        qos1=QOS1_PUBLISHERS, rate=RATE, seconds=plan.whole,
    )  # fmt: skip
    task = NeighbourTask(
        address=broker.address, act=neighbour.act, options=dict(neighbour.options), seconds=plan.during
    )
    with (
        Side("bench.isolation.neighbour", task) as beside,
        Side("bench.isolation.others", others) as living,
    ):
        for side in (beside, living):
            if not isinstance(side.hear(READY_S), Ready):
                raise BenchFault(f"{side.module}: an answer out of turn")
        living.say()
        time.sleep(plan.warm + plan.before)
        cores_before, waited_before, at = process.cpu_s(broker.pid), waited_s(broker.pid), time.monotonic()
        neighbour_ns = time.time_ns()
        beside.say()
        harm(neighbour, broker, plan, trigger)
        did = beside.hear(plan.during + EXTRA_S)
        elapsed_s = time.monotonic() - at
        cores, waited = process.cpu_s(broker.pid) - cores_before, waited_s(broker.pid) - waited_before
        quiet_ns = time.time_ns() + int(SETTLE_S * 1e9)
        lived = living.hear(plan.whole + EXTRA_S)
    if not isinstance(did, Did) or not isinstance(lived, Lived):
        raise BenchFault("an answer out of turn")
    began_ns = lived.began_ns + int(plan.warm * 1e9)
    times = Times(began_ns, neighbour_ns, quiet_ns, lived.began_ns + int(plan.whole * 1e9))
    messages = Messages(lived)
    figures = figures_of(messages, times) | {
        "lost": lived.lost,
        "disconnected": lived.disconnected,
        "out_of_order_or_twice": lived.twice_or_out_of_order,
        "unacknowledged": lived.unacknowledged,
        "sent": lived.sent,
        "generator_late_ms_max": lived.late_ns_max / 1e6,
        "generator_cores": lived.cpu_s / plan.whole,
        "neighbour_cores": did.cpu_s / elapsed_s,
        "neighbour_s": elapsed_s,
        "broker_cores": cores / elapsed_s,
        "broker_waited_ms_per_s": 1e3 * waited / elapsed_s,
    }
    figures |= {f"neighbour_{name}": value for name, value in did.figures.items()}
    return figures, timeline_of(messages, times)


def harm(neighbour: Neighbour, broker: Broker, plan: Plan, trigger: Path) -> None:
    """What the bench itself does meanwhile; returns when that is over."""
    if neighbour.harm == "slow syncs":
        trigger.touch()
        time.sleep(plan.during)
        trigger.unlink()
    elif neighbour.harm == "kill a shard":
        assert broker.pid is not None
        kill_shards(lambda: shards_of(broker.pid or 0), plan.during)


def kill_shards(shards: Callable[[], list[int]], seconds: float) -> None:
    """Kill every shard but the last one of the first moment, at once and again as often as fits."""
    *_, spared = shards()
    until = time.monotonic() + seconds
    while time.monotonic() < until - KILL_EVERY_S / 2:
        for pid in shards():
            if pid != spared:
                os.kill(pid, signal.SIGKILL)
        time.sleep(KILL_EVERY_S)


def shards_of(pid: int) -> list[int]:
    """The processes that a supervisor has forked, oldest first."""
    return [int(one) for one in process.read(Path(f"/proc/{pid}/task/{pid}/children")).split()]


def waited_s(pid: int) -> float:
    """How long the first threads of the broker's processes wanted a core and had none. proc(5), schedstat."""
    lines = [process.read(Path(f"/proc/{one}/schedstat")).split() for one in process.tree(pid)]
    return sum(int(line[1]) for line in lines if len(line) > 1) / 1e9
