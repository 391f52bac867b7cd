"""A thread that does what may wait for a disk, one job after another, and tells the loop when each is done.

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


class Worker:
    """One thread; `submit` from the loop, `finish` in the loop when `fd` is readable."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Done] | None] = SimpleQueue()
        self._finished: deque[tuple[Done, Any, BaseException | None]] = deque()
        self.pending = 0  # jobs whose end `finish` has not told yet
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], T], done: Callable[[T, BaseException | None], None]) -> None:
        """Run `job` on the thread; `done(result, fault)` is called by `finish`, on the loop."""
        self.pending += 1
        self._jobs.put((job, done))

    def finish(self) -> None:
        """Call `done` of every job that has ended since."""
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            pass
        while self._finished:
            done, result, fault = self._finished.popleft()
            self.pending -= 1
            done(result, fault)

    def stop(self) -> None:
        """End the thread after the jobs that were submitted."""
        self._jobs.put(None)
        self._thread.join()
        self.finish()
        os.close(self.fd)

    def _run(self) -> None:
        while (entry := self._jobs.get()) is not None:
            job, done = entry
            try:
                result, fault = job(), None
            except BaseException as raised:  # carried to the loop, where its owner decides
                result, fault = None, raised
            self._finished.append((done, result, fault))
            os.eventfd_write(self.fd, 1)
