"""The parent of the shards' processes: starts them, restarts those that die, stops them in order.

It has one plain thread and holds the listening sockets, the shards' datagram sockets and the lock of the data
directory, so that none of them closes when a shard dies."""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable

from rumq.loop.backoff import Backoff
from rumq.supervision.broker_parent import ends_with
from rumq.supervision.fork_memory import share_memory
from rumq.supervision.service_notification import READY, STOPPING, notify, reloading
from rumq.supervision.watchdog import ALIVE, ShardWatch

STEADY_SECONDS = 10.0
FLUSH_SECONDS = 1.0  # events that could not be sent are tried again
BACKOFF_SECONDS = (0.0, 0.1, 0.5, 2.0, 10.0, 30.0)
CRASHES_REPORTED = 3  # in a row, from here on
IS_READY, HAS_RELOADED, IS_ALIVE = b"r", b"s", b"a"  # a shard writes these to its supervisor
DEPOSED = 10  # exit status of a shard that leads no more: it is started again at once, as one that follows
WAKERS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Child:
    """One shard's process, or the wait before its restart."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.pid = 0
        self.ready_fd = -1
        self.is_ready = False
        self.is_reloading = False
        self.started = 0.0
        self.backoff = Backoff(BACKOFF_SECONDS, STEADY_SECONDS)
        self.start_at = 0.0


class Supervisor:
    def __init__(
        self, count: int, run_shard: Callable[[int, int], int], *, event: Callable[..., None],
        all_ready: Callable[..., None], reread: Callable[[], bool], watchdog_seconds: float,
        flush: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """run_shard: runs shard `index` in a process of its own, where SIGHUP is blocked until it can reload; writes
        IS_READY to a descriptor once it is, HAS_RELOADED after each SIGHUP, and returns its exit status

        all_ready: reports that all are, with `seconds`; reread: reads the settings for shards that start later, and
        says whether those that run are to reload them

        watchdog_seconds: shards write IS_ALIVE while the service manager wants to hear of them that often; 0: never

        flush: sends events to who shows them, and says whether some are left for later"""
        self._run_shard, self._event, self._all_ready, self._reread = run_shard, event, all_ready, reread
        self._children = [Child(index) for index in range(count)]
        self._watch = ShardWatch(watchdog_seconds, lambda: notify(ALIVE), self._silent)
        self._flush = flush
        self._was_ready = False
        self._stopping = False
        self._status = 0

    def run(self, started: float) -> int:
        """Until all shards have stopped; returns the exit status. SIGHUP may be blocked before: one that came is
        forwarded."""
        woken, waker = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(waker, False)
        for number in WAKERS:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WAKERS)
        share_memory()
        for child in self._children:
            self._start(child)
        while any(child.pid for child in self._children) or not self._stopping:
            self._wait(woken)
            if not self._was_ready and all(child.is_ready for child in self._children):
                self._was_ready = True
                self._all_ready(seconds=round(time.monotonic() - started, 3))
                notify(READY)
            now = time.monotonic()
            self._watch.check(now)
            for child in self._children:
                if not child.pid and not self._stopping and child.start_at <= now:
                    self._start(child)
        signal.set_wakeup_fd(-1)
        return self._status

    def _start(self, child: Child) -> None:
        ready, status = os.pipe()
        own_pid = os.getpid()
        # A signal to a child that still has our handlers would be lost, or stop all.
        signal.pthread_sigmask(signal.SIG_BLOCK, WAKERS)
        pid = os.fork()
        if pid == 0:
            os.close(ready)
            self._run_child(child.index, status, own_pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WAKERS)
        os.close(status)
        if child.ready_fd >= 0:
            os.close(child.ready_fd)
        child.pid, child.ready_fd, child.is_ready = pid, ready, False
        child.started = time.monotonic()

    def _run_child(self, index: int, status_fd: int, parent: int) -> None:
        """In the new process: run the shard, then exit."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in WAKERS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGHUP})  # until it can read its settings again
            # A broker whose parent was killed is to be gone at once, as one process would be.
            if ends_with(parent):
                status = self._run_shard(index, status_fd)
        except BaseException:  # whatever it is, this process must not go on as the supervisor
            self._event("shard.failed", shard=index, exc_info=True)
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _wait(self, woken: int) -> None:
        """Until a signal, a status byte of a shard, the time of a restart, or of telling the service manager."""
        pending = {child.ready_fd: child for child in self._children if child.pid and child.ready_fd >= 0}
        starts = [] if self._stopping else [child.start_at for child in self._children if not child.pid]
        if self._flush():
            starts.append(time.monotonic() + FLUSH_SECONDS)
        next_time = min([*starts, self._watch.next_check])
        seconds = None if next_time == math.inf else max(0.0, next_time - time.monotonic())
        readable, _, _ = select.select([woken, *pending], [], [], seconds)
        for fd in readable:
            if fd == woken:
                continue
            self._read_status(pending[fd])
        if woken in readable:
            for number in os.read(woken, 512):
                self._signalled(signal.Signals(number))

    def _read_status(self, child: Child) -> None:
        """A shard reports that it is ready, or has reloaded its settings; or it has ended."""
        said = os.read(child.ready_fd, 16)
        if not said:
            os.close(child.ready_fd)
            child.ready_fd = -1
        if IS_ALIVE in said:
            self._watch.heard(child.index, time.monotonic())
        if IS_READY in said:
            child.is_ready = True
            if self._was_ready:
                self._event("shard.ready", shard=child.index, seconds=round(time.monotonic() - child.started, 3))
        if HAS_RELOADED in said:
            self._reloaded(child)

    def _reloaded(self, child: Child) -> None:
        """Notify the service manager once no shard is reloading any more."""
        if child.is_reloading:
            child.is_reloading = False
            if not any(each.is_reloading for each in self._children) and not self._stopping:
                notify(READY)

    def _silent(self, shard: int, seconds: float) -> None:
        self._event("shard.silent", shard=shard, seconds=round(seconds, 3))

    def _reload(self) -> None:
        ready = [child for child in self._children if child.pid and child.is_ready]
        if ready:
            notify(reloading())
        # First: once the shards have answered, the files may be written again.
        if not self._reread():
            if ready:
                notify(READY)
            return
        for child in ready:
            child.is_reloading = True
        for child in self._children:
            if child.pid:
                os.kill(child.pid, signal.SIGHUP)

    def _signalled(self, number: signal.Signals) -> None:
        if number is signal.SIGCHLD:
            self._reap()
        elif number is signal.SIGHUP:
            self._reload()
        elif not self._stopping:
            self._event("broker.stopping", signal=number.name)
            self._stop()

    def _stop(self) -> None:
        self._stopping = True
        notify(STOPPING)
        for child in self._children:
            if child.pid:
                os.kill(child.pid, signal.SIGTERM)

    def _reap(self) -> None:
        for child in self._children:
            if child.pid:
                pid, how = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    self._ended(child, os.waitstatus_to_exitcode(how))

    def _ended(self, child: Child, status: int) -> None:
        child.pid = 0
        self._watch.ended(child.index)
        self._reloaded(child)
        if self._stopping:
            self._status = self._status or (0 if status == DEPOSED else max(0, status))
            return
        lived = time.monotonic() - child.started
        if not self._was_ready and not child.is_ready and status > 0:
            # It refused to start and reported why: a restart would not help.
            self._status = status
            self._stop()
            return
        child.is_ready = False
        if status == DEPOSED:
            child.start_at = time.monotonic()
            return
        wait = child.backoff.died(lived)
        child.start_at = time.monotonic() + wait
        why = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        self._event("shard.died", shard=child.index, why=why, start_seconds=wait)
        if child.backoff.deaths >= CRASHES_REPORTED:
            self._event("shard.crashing", shard=child.index, times=child.backoff.deaths, start_seconds=wait)
