"""Worker threads for calls that may wait for a disk. A descriptor wakes the loop when one has finished.

Jobs of one lane run in order, lanes run in parallel: a slow disk must not delay the others."""
# compiled: warm

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from math import inf
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from commitlog.kernels.flush_thread import FlushThread, reset
from commitlog.write.segment_writer import Flush

T = TypeVar("T")
Done = Callable[[Any, BaseException | None], None]
REST_SECONDS = 1.0  # after a write on the loop that had to wait for the disk, threads write for so long


class LogStateUnknown(BaseException):
    """The state of the log is unknown. No guard catches it: the shard ends, and is started again."""


class Pool:
    """What a shard needs of a `Worker`. fd: readable when a job has ended; pending: jobs not yet reported"""

    fd: int
    pending: int

    def maybe_write(self, flush: Flush) -> bool:
        """Write a group of the log that is not synced at once, on the loop; False: have a thread do it.

        raises: OSError"""
        raise NotImplementedError

    def flush(self, flush: Flush, done: Done, lane: int = 0) -> None:
        """Have a thread write a group of the log, and sync it if that is due, then `done(None, fault)`, on the loop.

        For each lane one at a time; beside jobs of its lane."""
        raise NotImplementedError

    def submit(self, job: Callable[[], T], done: Callable[[T, BaseException | None], None], lane: int = 0) -> None:
        """Run `job` on the lane's thread; `done(result, fault)` is called by `finish`, on the loop."""
        raise NotImplementedError

    def finish(self) -> None:
        """Call `done` of every job that has ended since."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the threads after the jobs that were submitted."""
        raise NotImplementedError


class DiskWorkers(NamedTuple):
    """writer: of groups of the log and of removals, a lane for each partition; reader: of everything else"""

    writer: Pool
    reader: Pool


class Worker(Pool):
    """A thread for each lane, started with its first job. `submit` on the loop, `finish` when `fd` is readable."""

    def __init__(
        self, name: str, failed: Callable[[str], None] | None = None, *, one_lane: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """failed: told the name when a `done` raises; None: it raises out of `finish`

        one_lane: whatever lane is asked for, jobs run in the order in which they were submitted"""
        self._name, self._failed, self._one_lane = name, failed, one_lane
        self._lanes: dict[int, SimpleQueue[tuple[Callable[[], object], Done] | None]] = {}
        self._threads: list[threading.Thread] = []
        self._flush_threads: dict[int, FlushThread] = {}
        self._flushes: list[FlushThread] = []  # those that write now
        self._finished: deque[tuple[Done, Any, BaseException | None]] = deque()
        self.pending = 0  # jobs that `finish` has not reported yet
        self._monotonic = monotonic
        self._rests, self._rests_until = False, -inf  # whether a write on the loop had to wait, and until when
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def maybe_write(self, flush: Flush) -> bool:
        """Write to the page cache on the loop, while no thread has work: a thread's wake-up and ours cost more.

        The kernel can make any write wait for the disk; after one that did, threads do them for a while. A slow one
        may have been preempted, so what counts is whether the loop's thread has given up its core."""
        if self.pending > len(self._flushes) or (self._rests and self._monotonic() < self._rests_until):
            return False
        self._rests = flush.write_now()
        if self._rests:
            self._rests_until = self._monotonic() + REST_SECONDS
        return True

    def submit(self, job: Callable[[], T], done: Callable[[T, BaseException | None], None], lane: int = 0) -> None:
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

    def flush(self, flush: Flush, done: Done, lane: int = 0) -> None:
        if flush.descriptor < 0 or not flush.syncs:
            self.submit(flush.run, done, lane)
            return
        thread = self._flush_threads.get(lane)
        if thread is None:
            try:
                thread = self._flush_threads[lane] = FlushThread(self.fd)
            except OSError:  # clients have all descriptors: it needs two
                self.submit(flush.run, done, lane)
                return
        self.pending += 1
        thread.done = done
        self._flushes.append(thread)
        thread.start(flush.descriptor, flush.data, flush.size, flush.position)

    def finish(self) -> None:
        reset(self.fd)
        at = 0
        while at < len(self._flushes):
            thread: FlushThread = self._flushes[at]
            number = thread.maybe_end()
            if number < 0:
                at += 1
            else:
                del self._flushes[at]
                failure = OSError(number, os.strerror(number)) if number else None
                self._tell(thread.done, None, failure)
        while self._finished:
            self._tell(*self._finished.popleft())

    def _tell(self, done: Done, result: object, fault: BaseException | None) -> None:
        self.pending -= 1
        try:
            done(result, fault)
        except Exception:
            if self._failed is None:
                raise
            self._failed(self._name)

    def stop(self) -> None:
        for flusher in self._flush_threads.values():
            flusher.stop()
        for jobs in self._lanes.values():
            jobs.put(None)
        for thread in self._threads:
            thread.join()
        self.finish()
        os.close(self.fd)

    def _run(self, jobs: SimpleQueue[tuple[Callable[[], object], Done] | None]) -> None:
        while (entry := jobs.get()) is not None:
            job, done = entry
            try:
                result, fault = job(), None
            except BaseException as raised:  # carried to the loop, where its owner decides
                result, fault = None, raised
            self._finished.append((done, result, fault))
            os.eventfd_write(self.fd, 1)
