"""Threads beside the loop that compute password hashes and wait for other servers, while clients wait for CONNACK.

Few, and of low priority, so that clients that are in already notice nothing; whose turn it is, is the floor's below.
Knows no password: a job is a call."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from rumq.auth.guessing import Guesses
from rumq.auth.identity import Work
from rumq.auth.lanes import Lanes
from rumq.shards.worker import Worker

Done = Callable[[Any, BaseException | None], None]
Job = tuple[Callable[[], Any], Done]
THREADS = {"hash": max(1, (os.cpu_count() or 2) // 2), "http": 8}
NICE = 10


class Checking:
    """Runs `Work` of each kind on threads that are made when the first is asked for."""

    def __init__(
        self, watch: Callable[[int, Callable[[], None]], None], later: Callable[[float, Callable[[], None]], None]
    ) -> None:  # fmt: skip
        """watch: have a call made in the loop when a descriptor is readable; later: after so many seconds"""
        self._watch = watch
        self._later = later
        self._lanes: dict[str, Lanes[Job]] = {}
        self._idle: dict[str, list[Worker]] = {}
        self._workers: list[Worker] = []
        self.guesses = Guesses()

    def submit(self, address: str, work: Work, done: Done) -> bool:
        """Run `work`, then `done(result, fault)` on the loop. False: too many wait already, nothing will be run."""
        if work.kind not in self._lanes:
            self._begin(work.kind)
        if not self._lanes[work.kind].put(address, (work.run, done)):
            return False
        self._next(work.kind)
        return True

    def hold_back(self, address: str, now: float, tell: Callable[[], None]) -> None:
        """Let a refusal go out as late as the address has earned."""
        seconds = self.guesses.failed(address, now)
        for lanes in self._lanes.values():
            lanes.hold(address)
        held = list(self._lanes)

        def go() -> None:
            tell()
            for kind in held:
                self._lanes[kind].release(address)
                self._next(kind)

        if seconds:
            self._later(seconds, go)
        else:
            go()

    def _begin(self, kind: str) -> None:
        count = THREADS[kind]
        self._lanes[kind] = Lanes(count)
        made = [Worker(f"rumq-{kind}") for _ in range(count)]
        for worker in made:
            self._watch(worker.fd, worker.finish)
            if kind == "hash":
                worker.submit(yield_to_others, lambda *_: None)
        self._idle[kind] = made
        self._workers += made

    def _next(self, kind: str) -> None:
        while (job := self._lanes[kind].maybe_next()) is not None:
            run, done = job
            worker = self._idle[kind].pop()
            worker.submit(run, partial(self._done, kind, worker, done))

    def _done(self, kind: str, worker: Worker, done: Done, result: Any, fault: BaseException | None) -> None:
        self._idle[kind].append(worker)
        self._lanes[kind].finished()
        self._next(kind)
        done(result, fault)

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()


def yield_to_others() -> None:
    """Have this thread, and no other, run when the rest of the process has nothing to do. setpriority(2), Linux."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
    except OSError:
        pass  # it is as important as the others then
