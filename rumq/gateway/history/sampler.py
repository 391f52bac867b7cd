"""Samples the shards every 2 s into the history, as a scrape does: what a scrape has just asked is not asked again.

Each sample is in a file when the next one is taken: a kill loses 2 s, and what was sampled when it came."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

from rumq.admin.figures import ShardFigures
from rumq.gateway.history import history_file, sample_journal
from rumq.gateway.history.ring_store import Points, RingStore, Tier
from rumq.gateway.history.series import sampled
from rumq.gateway.history.snapshot import FiguresSnapshot

WRITE_SECONDS = 300.0
OnThread = Callable[..., Awaitable[None]]


class HistorySampler:
    """ask: figures of the shards and when they were made, None if one is away; wall: seconds since 1970, at the start

    directory: of the broker's data"""

    def __init__(
        self, ask: Callable[[], Awaitable[tuple[float, list[ShardFigures] | None]]], directory: str,
        event: Callable[..., None], wall: Callable[[], float], on_thread: OnThread = trio.to_thread.run_sync,
    ) -> None:  # fmt: skip
        self._ask, self._directory, self._event, self._wall = ask, directory, event, wall
        self._on_thread = on_thread
        self._path = f"{directory}/{history_file.NAME}"
        self._journal = f"{directory}/{sample_journal.NAME}"
        self.store = RingStore()
        self._before: dict[int, tuple[int, FiguresSnapshot]] = {}  # by step of the tier, with its slot
        self._offset = 0.0  # from trio's clock to seconds since 1970: steps of the clock do not tear the history
        self._is_writable = True

    async def run(self) -> None:
        """Until cancelled; writes the file now and then, and at the end."""
        self._offset = self._wall() - trio.current_time()
        self._read()
        self._write(history_file.content(self.store))  # a journal goes on from it
        step = self.store.tiers[0].step
        written_at = self.now()
        try:
            while True:
                await trio.sleep(step - self.now() % step)
                await self._sample()
                if self.now() - written_at >= WRITE_SECONDS:
                    written_at = self.now()
                    await self._on_thread(self._write, history_file.content(self.store))
        finally:
            self._write(history_file.content(self.store))

    def now(self) -> float:
        """Seconds since 1970, without the steps of the clock since the start."""
        return trio.current_time() + self._offset

    def points(self, names: list[str], seconds: int, points: int) -> Points:
        return self.store.points(names, seconds, points, self.now())

    async def _sample(self) -> None:
        asked_at, shards = await self._ask()
        if shards is None:
            return  # the next sample is of the whole time
        after = FiguresSnapshot(asked_at, shards, free_bytes(self._directory))
        now = self.now()
        put = [self._put(tier, int((now + 0.1) // tier.step), after) for tier in self.store.tiers]
        if samples := [each for each in put if each is not None]:
            await self._on_thread(self._add, samples)

    def _put(self, tier: Tier, slot: int, after: FiguresSnapshot) -> sample_journal.SlotSample | None:
        then, before = self._before.get(tier.step, (-1, None))
        if slot <= then or (before is not None and after.at <= before.at):
            return None
        self._before[tier.step] = slot, after
        if before is None:
            return None
        values = sampled(before, after)
        tier.put(slot, values)
        return sample_journal.SlotSample(tier.step, slot, values)

    def _read(self) -> None:
        try:
            history_file.read(self._path, self.store, self.now())
        except FileNotFoundError:
            pass
        except OSError as fault:
            self._event("history.unwritten", why=f"cannot be read: {fault.strerror or fault}", path=self._path)
        except history_file.Unreadable as fault:
            aside = f"{self._directory}/{history_file.ASIDE}"
            self.store = RingStore()
            try:
                os.replace(self._path, aside)
            except OSError:
                pass  # the next one takes its place anyway
            self._event("history.put_aside", path=aside, why=str(fault))
        try:
            sample_journal.read(self._journal, self.store, self.now())
        except OSError:
            pass  # there is none, or it cannot be read: the history is a few minutes older

    def _write(self, data: list[history_file.TierContent]) -> None:
        """The whole history; the journal begins anew."""
        with self._reporting_faults(self._path):
            history_file.write(self._path, data)
            sample_journal.begin(self._journal)

    def _add(self, samples: list[sample_journal.SlotSample]) -> None:
        with self._reporting_faults(self._journal):
            sample_journal.add(self._journal, samples)

    @contextmanager
    def _reporting_faults(self, path: str) -> Iterator[None]:
        """A fault is an event, once until a write succeeds."""
        try:
            yield
        except OSError as fault:
            if self._is_writable:
                self._event("history.unwritten", why=fault.strerror or str(fault), path=path)
            self._is_writable = False
        else:
            self._is_writable = True


def free_bytes(directory: str) -> float:
    try:
        found = os.statvfs(directory)
    except OSError:
        return float("nan")
    return float(found.f_bavail * found.f_frsize)
