"""The worker processes of one run, seen from the bench: start, give rounds, collect reports."""

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec

from bench.connections import Address, BenchFault
from bench.load.load import Failed, Heard, Load, Published, Ready, Report, Round, Task
from bench.peers.peer import environment
from bench.progress import Progress, create

CONNECT_S = 120.0
ROUND_EXTRA_S = 90.0


class Worker:
    def __init__(self, task: Task) -> None:
        self.role = task.role
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.load.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
        )  # fmt: skip
        self.say(task)

    def say(self, order: Task | Round) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(msgspec.json.encode(order) + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has said why it ended, and hear() reads that

    def descriptor(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def hear(self, seconds_max: float) -> Report:
        """Its next report. raises: BenchFault when it failed, ended, or said nothing in time"""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds_max)[0]:
            raise BenchFault(f"{self.role}: no answer within {seconds_max:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise BenchFault(f"{self.role}: the worker ended with {self.process.wait()}")
        report: Report = msgspec.json.decode(line, type=Report)
        if isinstance(report, Failed):
            raise BenchFault(report.why)
        return report

    def end(self, at_once: bool = False) -> None:
        """Close its input, at which it closes its connections; or stop it in the middle of a round."""
        assert self.process.stdin is not None and self.process.stdout is not None
        if at_once:
            self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Generator:
    """The workers of one load, connected to one broker. Use as a context manager.

    heard_at: where the subscribers are; None: at the same one"""

    def __init__(
        self, load: Load, address: Address, workers: tuple[int, int] = (1, 1), heard_at: Address | None = None
    ) -> None:
        self.load, self.addresses = load, {"publish": address, "subscribe": heard_at or address}
        # A shared subscription is heard by one process, which alone can say that nothing came twice.
        subscribing = 1 if load.spread == "shared" else workers[1]
        self.counts = (min(workers[0], load.publishers), min(subscribing, load.subscribers))
        self.rounds = 0
        self.workers: list[Worker] = []

    def __enter__(self) -> "Generator":
        descriptor, name = tempfile.mkstemp(prefix="bench-progress-", dir=shared_memory())
        os.close(descriptor)
        self.path = Path(name)
        try:
            create(self.path, self.load.publishers, self.counts)
            self.progress = Progress(self.path, self.load.publishers, self.counts)
            # Subscribers first: nothing may be published that nobody is there to hear.
            self.subscribing = self.start("subscribe", self.load.subscribers, self.counts[1])
            self.publishing = self.start("publish", self.load.publishers, self.counts[0])
        except BaseException:
            self.close(at_once=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(at_once=fault is not None)

    def close(self, at_once: bool) -> None:
        for worker in self.workers:
            worker.end(at_once)
        self.path.unlink(missing_ok=True)

    def start(self, role: str, connections: int, count: int) -> list[Worker]:
        started = []
        for slot, share in enumerate(shares(connections, count)):
            task = Task(
                role="publish" if role == "publish" else "subscribe",
                address=self.addresses[role], load=self.load, first=share.start, count=len(share), slot=slot,
                workers=self.counts, progress=str(self.path), name=f"bench-{os.getpid()}",
            )  # fmt: skip
            started.append(Worker(task))
        self.workers += started
        for worker in started:
            worker.hear(CONNECT_S)
        return started

    def run(self, messages: int, seconds_max: float, lead: int | None = None) -> tuple[list[Published], list[Heard]]:
        """One round: `messages` of each publisher, or as many as go into `seconds_max`."""
        self.rounds += 1
        now = Round(number=self.rounds, messages=messages, seconds_max=seconds_max, lead=lead or self.load.lead)
        self.progress.clear()
        for worker in self.subscribing:
            worker.say(now)
        for worker in self.subscribing:
            worker.hear(CONNECT_S)
        for worker in self.publishing:
            worker.say(now)
        reports = hear_all(self.workers, seconds_max + ROUND_EXTRA_S)
        return (
            [report for report in reports if isinstance(report, Published)],
            [report for report in reports if isinstance(report, Heard)],
        )


def hear_all(workers: Sequence[Worker], seconds_max: float) -> list[Report]:
    """One report of each, in whatever order they come: where one fails, the others would wait for nothing."""
    waiting = {worker.descriptor(): worker for worker in workers}
    until = time.monotonic() + seconds_max
    reports = []
    while waiting:
        ready = select.select(list(waiting), [], [], max(0.0, until - time.monotonic()))[0]
        for descriptor in ready or list(waiting):
            reports.append(waiting.pop(descriptor).hear(seconds_max if ready else 0.0))
    return reports


@contextlib.contextmanager
def idle_connections(count: int, address: Address) -> Iterator[None]:
    """`count` connections that only connect."""
    with one_worker("idle", Load(publishers=count, subscribers=0), count, address):
        yield


@contextlib.contextmanager
def one_worker(role: Literal["idle", "ping", "connect"], load: Load, count: int, address: Address) -> Iterator[Worker]:
    """A worker whose `count` connections are open."""
    name = f"bench-{os.getpid()}"
    worker = Worker(Task(role=role, address=address, load=load, first=0, count=count, name=name))
    try:
        if not isinstance(worker.hear(CONNECT_S), Ready):
            raise BenchFault(f"{role}: an answer out of turn")
        yield worker
    finally:
        worker.end()


def shares(total: int, workers: int) -> Sequence[range]:
    """`total` connections in `workers` ranges whose sizes differ by one at most."""
    return [range(total * i // workers, total * (i + 1) // workers) for i in range(workers)]


def shared_memory() -> str | None:
    """Where a mapped file is never written to a disk; None: the ordinary temporary folder."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None
