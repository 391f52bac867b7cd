"""Threads that do what may wait for a disk, one job after another, and tell the loop when each is done.

Jobs of one lane wait for each other, those of different lanes do not: one disk that is slow must not slow the rest.
The loop thread is woken by a descriptor in its epoll set. Knows nothing of what the jobs are."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Done = Callable[[Any, BaseException | None], None]


class Broken(BaseException):
    """What no guard takes: this shard can vouch for nothing any more, so it ends, and is started again."""


class Worker:
    """A thread for each lane, begun with its first job; `submit` from the loop, `finish` in the loop when `fd` is
    readable."""

    def __init__(self, name: str, *, one_lane: bool = False) -> None:
        """one_lane: whatever is asked for: jobs are done in the order in which they were submitted"""
        self._name, self._one_lane = name, one_lane
        self._lanes: dict[int, SimpleQueue[tuple[Callable[[], Any], Done] | None]] = {}
        self._threads: list[threading.Thread] = []
        self._finished: deque[tuple[Done, Any, BaseException | None]] = deque()
        self.pending = 0  # jobs whose end `finish` has not told yet
        self.failed: Callable[[str], None] | None = None  # told of a `done` that raises; None: it raises
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def submit(
        self, job: Callable[[], T], done: Callable[[T, BaseException | None], None], lane: int = 0
    ) -> None:
        """Run `job` on the lane's thread; `done(result, fault)` is called by `finish`, on the loop."""
        self.pending += 1
        if self._one_lane:
            lane = 0
        jobs = self._lanes.get(lane)
        if jobs is None:
            jobs = self._lanes[lane] = SimpleQueue()
            self._threads.append(
                threading.Thread(target=self._run, args=(jobs,), name=f"{self._name}-{lane}", daemon=True)
            )
            self._threads[-1].start()
        jobs.put((job, done))

    def finish(self) -> None:
        """Call `done` of every job that has ended since."""
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            pass
        while self._finished:
            done, result, fault = self._finished.popleft()
            self.pending -= 1
            try:
                done(result, fault)
            except Exception:
                if self.failed is None:
                    raise
                self.failed(self._name)

    def stop(self) -> None:
        """End the threads after the jobs that were submitted."""
        for jobs in self._lanes.values():
            jobs.put(None)
        for thread in self._threads:
            thread.join()
        self.finish()
        os.close(self.fd)

    def _run(self, jobs: SimpleQueue[tuple[Callable[[], Any], Done] | None]) -> None:
        while (entry := jobs.get()) is not None:
            job, done = entry
            try:
                result, fault = job(), None
            except BaseException as raised:  # carried to the loop, where its owner decides
                result, fault = None, raised
            self._finished.append((done, result, fault))
            os.eventfd_write(self.fd, 1)
