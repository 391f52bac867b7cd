"""Threads that compute password hashes and ask authentication servers, while clients wait for CONNACK.

They are few and have low priority. `rumq.auth.fair_queue` schedules addresses fairly. Equal questions are asked once;
a question that nobody waits for is dropped. Knows no password: a job is a call."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from rumq.auth.errors import Busy
from rumq.auth.fair_queue import BACKOFF_TURN_SECONDS, FairQueue
from rumq.auth.identity import Work
from rumq.auth.login_backoff import LoginBackoff
from rumq.auth.quota_holder import holder_of
from rumq.shards.write_path.worker_threads import Worker

Done = Callable[[Any, BaseException | None], None]
# Argon2id and PBKDF2 let other threads run; at the lowest priority more of them cost the loop nothing.
THREADS = {"hash": min(16, max(2, os.cpu_count() or 2)), "http": 8}
NICE = 10
RIGHT_MAX = 100_000  # (address, user) pairs with a right password that are remembered, the latest
RIGHT_SECONDS = 7 * 86_400.0


class Job:
    """One call, and those who wait for it."""

    __slots__ = ("asked", "key", "kind", "run")

    def __init__(self, work: Work, asked: WaitingLogin) -> None:
        self.kind, self.key, self.run = work.kind, work.key, work.run
        self.asked = [asked]


class WaitingLogin:
    """One client that waits. is_here: whether it still does"""

    __slots__ = ("done", "is_here")

    def __init__(self, done: Done, is_here: Callable[[], bool]) -> None:
        self.done, self.is_here = done, is_here


class AuthPool:
    """Runs `Work` of each kind on threads that are made when the first is asked for."""

    def __init__(
        self, watch: Callable[[int, Callable[[], None]], None], later: Callable[[float, Callable[[], None]], None],
        monotonic: Callable[[], float],
    ) -> None:  # fmt: skip
        """watch: have a call made in the loop when a descriptor is readable; later: after so many seconds"""
        self._watch = watch
        self._later = later
        self._monotonic = monotonic
        self._queues: dict[str, FairQueue[Job]] = {}
        self._idle: dict[str, list[Worker]] = {}
        self._workers: list[Worker] = []
        self._pending: dict[bytes, Job] = {}
        # (holder, user) -> when its password was right
        self._right: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._is_timed: set[str] = set()
        self.guesses = LoginBackoff()

    def submit(
        self, address: str, work: Work, done: Done, *, user: str = "", is_here: Callable[[], bool] = lambda: True
    ) -> bool:
        """Run `work`, then `done(result, fault)` on the loop. False: too many wait already, nothing will be run.

        user: whom the client says to be; is_here: whether it still waits. Of who has to go for another one, `fault` is
        a `Busy`."""
        asked = WaitingLogin(done, is_here)
        same = self._pending.get(work.key) if work.key else None
        if same is not None:
            same.asked.append(asked)
            return True
        if work.kind not in self._queues:
            self._begin(work.kind)
        job, holder = Job(work, asked), holder_of(address)
        if not self._queues[work.kind].put(holder, job, user, priority=self._was_right(holder, user)):
            return False
        if job.key:
            self._pending[job.key] = job
        self._next(work.kind)
        return True

    def was_right(self, address: str, user: str | None) -> None:
        """A client came in: the next one that says to be the same, from there, comes before those who never have."""
        if user:
            key = holder_of(address), user
            self._right[key] = self._monotonic()
            self._right.move_to_end(key)
            if len(self._right) > RIGHT_MAX:
                self._right.popitem(last=False)

    def _was_right(self, holder: str, user: str) -> bool:
        when = self._right.get((holder, user))
        return when is not None and self._monotonic() - when < RIGHT_SECONDS

    def delay_refusal(self, address: str, now: float, tell: Callable[[], None], *, user: str = "") -> None:
        """Let a refusal go out as late as the address has earned."""
        holder = holder_of(address)
        self._right.pop((holder, user), None)
        seconds = self.guesses.failed(holder, now)
        for queue in self._queues.values():
            queue.begin_backoff(holder, user, now)
        kinds = list(self._queues)

        def go() -> None:
            tell()
            for kind in kinds:
                self._queues[kind].end_backoff(holder, user)
                self._next(kind)

        if seconds:
            self._later(seconds, go)
        else:
            go()

    def _begin(self, kind: str) -> None:
        count = THREADS[kind]
        self._queues[kind] = FairQueue(count, shed=self._shed)
        made = [Worker(f"rumq-{kind}") for _ in range(count)]
        for worker in made:
            self._watch(worker.fd, worker.finish)
            if kind == "hash":
                worker.submit(yield_to_others, lambda *_: None)
        self._idle[kind] = made
        self._workers += made

    def _next(self, kind: str) -> None:
        queue = self._queues[kind]
        while (job := queue.maybe_next(self._monotonic())) is not None:
            if any(each.is_here() for each in job.asked):
                worker = self._idle[kind].pop()
                worker.submit(job.run, partial(self._done, kind, worker, job))
            else:
                self._forget(job)
                queue.finished()
        if queue.waiting and queue.running < queue.running_max and kind not in self._is_timed:
            self._is_timed.add(kind)
            self._later(BACKOFF_TURN_SECONDS, partial(self._look_again, kind))

    def _look_again(self, kind: str) -> None:
        self._is_timed.discard(kind)
        self._next(kind)

    def _done(self, kind: str, worker: Worker, job: Job, result: object, fault: BaseException | None) -> None:
        self._idle[kind].append(worker)
        self._forget(job)
        self._queues[kind].finished()
        self._next(kind)
        for each in job.asked:
            each.done(result, fault)

    def _shed(self, job: Job) -> None:
        self._forget(job)
        for each in job.asked:
            each.done(None, Busy())

    def _forget(self, job: Job) -> None:
        if job.key:
            self._pending.pop(job.key, None)

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()


def yield_to_others() -> None:
    """Have this thread, and no other, run when the rest of the process has nothing to do. setpriority(2), Linux."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
    except OSError:
        pass  # it is as important as the others then
