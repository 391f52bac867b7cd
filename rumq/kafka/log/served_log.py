"""The log of a data directory, as all connections read it: views of partitions, and the tails that somebody follows.

A partition is followed while somebody asks for its end, and some seconds longer. Its files tell of each write; what
they do not prove to be committed yet, the broker is asked after a moment.
docs/decisions/0067-kafka-clients-read-the-log.md"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Protocol

import trio

from commitlog import Chunk, Gap, RealFiles
from commitlog.read.partition_view import PartitionView
from rumq.gateway.records.partition_views import PartitionViews
from rumq.kafka.log.file_watch import FileWatch
from rumq.kafka.log.tail import PartitionTail

FOLLOWED_SECONDS = 5.0  # after somebody asked last
LOOK_SECONDS, BLIND_LOOK_SECONDS = 1.0, 0.02  # between looks when no write is told; without inotify
ASK_SECONDS = 0.001  # after a write that proves nothing, until the broker is asked
ASK_AGAIN_SECONDS = 0.002  # between two questions
ASK_GIVE_UP_SECONDS = 0.1  # the broker's own mark was to be there by then
VIEW_SECONDS = 0.02  # a view is made anew at most so often
OLD_VIEW_SECONDS = 1.0  # retention removes segments meanwhile, and partitions become more


class AsksCommitted(Protocol):
    """`committed.CommittedQuestions`"""

    async def ask(self, names: set[str]) -> dict[str, int] | None: ...


class LogPartition:
    """One partition. end: what is below may be read; it never goes back. view: as it was read last

    newest_ms: when its newest record came, by the log's time, which never runs backwards; 0: unknown, or it has none
    It is followed while somebody waits"""

    def __init__(self, view: PartitionView) -> None:
        self.view = view
        self.name = view.name
        self.tail: PartitionTail | None = None
        self.end = view.end_lsn
        self.asked_at = -math.inf  # somebody wanted what comes next
        self._waiters: set[Callable[[], None]] = set()
        self.newest_ms = 0
        self._dated: PartitionView | None = None

    @property
    def is_dated(self) -> bool:
        return self._dated is self.view

    def date(self) -> None:
        """Look when the newest record came. Blocks. raises: OSError"""
        view = self.view
        self.newest_ms, self._dated = view.last_ts // 1000, view

    @property
    def first(self) -> int:
        return self.view.first_lsn

    @property
    def is_awaited(self) -> bool:
        return bool(self._waiters)

    def wait_with(self, call: Callable[[], None]) -> None:
        """Have it called each time there is more."""
        self._waiters.add(call)

    def wait_no_longer_with(self, call: Callable[[], None]) -> None:
        """Who was told of something takes it, and waits again: what comes meanwhile is not missed."""
        self._waiters.discard(call)
        self.asked_at = trio.current_time()

    def wake(self) -> None:
        for call in list(self._waiters):
            call()

    def take(self, view: PartitionView) -> None:
        """A newer view."""
        self.view = view
        self.advance()

    def advance(self) -> None:
        end = max(self.view.end_lsn, 0 if self.tail is None else self.tail.end)
        if end > self.end:
            self.end = end
            self.wake()

    def has_in_files(self, at: int) -> bool:
        """Whether a file is to be read for what begins there."""
        return self.tail is None or at < self.tail.first

    def piece(self, at: int, bytes_max: int) -> int:
        """The end of a piece that begins at `at` and is read at once; `at` where a newer view is needed first.

        Blocks if it is in files. raises: OSError"""
        tail = self.tail
        if tail is not None and at >= tail.first:
            return min(self.end, tail.end)
        end = min(self.end, self.view.end_lsn)
        return at if at >= end else max(at + 1, self.view.end_within(at, end, bytes_max))

    def chunks(self, at: int, end: int) -> Iterator[Chunk | Gap]:
        """The records of a piece; blocks if they are in files. raises: OSError"""
        tail = self.tail
        if tail is not None and at >= tail.first:
            return tail.chunks(at, end)
        return self.view.chunks(at, end)


class KafkaLog:
    """partitions: by name, such as main/g1/p0"""

    def __init__(self, directory: str, committed: AsksCommitted | None) -> None:
        """committed: None: the files alone say it, as on a node of a cluster"""
        self._directory, self._committed = directory, committed
        self._views = PartitionViews(directory)
        self._files = RealFiles()
        self._watch = FileWatch()
        self._viewed_at = -math.inf
        self._viewing = trio.Lock()
        self._written: set[str] = set()  # partitions that were written since they were looked at
        self._unproved = trio.Event()
        self._kick = trio.Event()
        self._threads = trio.CapacityLimiter(4)
        self.partitions: dict[str, LogPartition] = {}

    def close(self) -> None:
        self._watch.close()

    async def look(self, age_seconds: float = VIEW_SECONDS) -> None:
        """Views as the files are now, or were so long ago. raises: OSError"""
        if self._has_looked(age_seconds):
            return  # no matter who looks now
        async with self._viewing:
            if self._has_looked(age_seconds):
                return
            views = await trio.to_thread.run_sync(self._views.current, limiter=self._threads)
            self._viewed_at = trio.current_time()
            for view in views:
                known = self.partitions.get(view.name)
                if known is None:
                    self.partitions[view.name] = LogPartition(view)
                else:
                    known.take(view)

    def _has_looked(self, age_seconds: float) -> bool:
        return trio.current_time() - self._viewed_at < age_seconds

    def follow(self, partition: LogPartition) -> None:
        """Somebody wants what comes next."""
        partition.asked_at = trio.current_time()
        if partition.tail is None:
            self._kick.set()

    async def date(self, names: list[str]) -> None:
        """Know `newest_ms` of those of these that are here. raises: OSError"""
        here = [self.partitions[name] for name in names if name in self.partitions]
        undated = [each for each in here if not each.is_dated]
        if undated:
            await trio.to_thread.run_sync(date_all, undated, limiter=self._threads)

    async def reach(self, partition: LogPartition, lsn: int) -> bool | None:
        """Whether a partition is committed up to there; None: the broker does not say."""
        await self.look()
        if partition.end >= lsn:
            return True
        said = None if self._committed is None else await self._committed.ask({partition.name})
        if said is None:
            return None
        return said.get(partition.name, 0) >= lsn

    async def run(self) -> None:
        """Follow what is asked for, until cancelled."""
        async with trio.open_nursery() as nursery:
            if self._committed is not None:
                nursery.start_soon(self._ask, self._committed)
            if self._watch.descriptor >= 0:
                nursery.start_soon(self._hear)
            seconds = LOOK_SECONDS if self._watch.descriptor >= 0 else BLIND_LOOK_SECONDS
            while True:
                with trio.move_on_after(seconds) as waited:
                    await self._kick.wait()
                self._kick = trio.Event()
                written, self._written = self._written, set()
                for partition in list(self.partitions.values()):
                    if partition.tail is None or waited.cancelled_caught or partition.name in written:
                        await self._follow_one(partition)

    async def _hear(self) -> None:
        """What the files tell."""
        while True:
            await trio.lowlevel.wait_readable(self._watch.descriptor)
            changed = self._watch.changed()
            self._written |= self.partitions.keys() if changed is None else changed
            self._kick.set()

    async def _follow_one(self, partition: LogPartition) -> None:
        if not partition.is_awaited and trio.current_time() - partition.asked_at > FOLLOWED_SECONDS:
            partition.tail = None  # views go on
            return
        try:
            if partition.tail is None:
                await self._begin_tail(partition)
            else:
                if not partition.tail.look_shortly():
                    await trio.to_thread.run_sync(partition.tail.look, limiter=self._threads)
                if partition.tail.is_ended:
                    partition.advance()
                    await self._begin_tail(partition)
        except OSError:
            partition.tail = None
            return  # whoever reads is told
        partition.advance()
        if partition.tail is not None and partition.tail.written > partition.tail.end:
            self._unproved.set()

    async def _begin_tail(self, partition: LogPartition) -> None:
        """Of a view that is newer than all that was followed. raises: OSError"""
        self._watch.watch(f"{self._directory}/{partition.name}", partition.name)
        await self.look(0.0)
        segments = await trio.to_thread.run_sync(partition.view.segments, limiter=self._threads)
        if segments and not segments[-1].finished:
            partition.tail = PartitionTail(self._files, segments[-1], partition.view.end_lsn)
            await trio.to_thread.run_sync(partition.tail.look, limiter=self._threads)
        else:
            partition.tail = None

    async def _ask(self, committed: AsksCommitted) -> None:
        """Ask the broker while something is written of which the files do not say that it is committed."""
        while True:
            await self._unproved.wait()
            self._unproved = trio.Event()
            await trio.sleep(ASK_SECONDS)
            until = trio.current_time() + ASK_GIVE_UP_SECONDS
            while (waiting := self._waiting()) and trio.current_time() < until:
                said = await committed.ask(set(waiting)) or {}
                for name, partition in waiting.items():
                    if partition.tail is not None and partition.tail.said(said.get(name, 0)):
                        partition.advance()
                if self._waiting():
                    await trio.sleep(ASK_AGAIN_SECONDS)

    def _waiting(self) -> dict[str, LogPartition]:
        return {
            name: each
            for name, each in self.partitions.items()
            if each.tail is not None and each.tail.written > each.tail.end
        }


def date_all(partitions: list[LogPartition]) -> None:
    """Blocks. raises: OSError"""
    for each in partitions:
        each.date()
