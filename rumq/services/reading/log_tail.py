"""The newest records of every partition, read once for all who follow them, and told when there are more.

While somebody follows, one look at the files every 50 ms, with hundreds of followers up to 200 ms, and for publishers
that wait for ids every 20 ms; none while nobody does. What was written since the last look is read in one go on a
thread and kept for a while, so that followers at the end of the log read no file.
docs/decisions/0050-watchers-read-files.md, docs/decisions/0060-grpc.md"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from commitlog import Chunk, Gap
from commitlog.read.partition_view import PartitionView
from rumq.gateway.records.partition_views import PartitionViews

LOOK_SECONDS, URGENT_SECONDS = 0.05, 0.02
LOOK_SECONDS_MAX, A_FOLLOWER_SECONDS = 0.2, 0.0005  # each answer costs some 100 us, so many of them wait longer
READS_MAX = 4  # threads that read the log
KEPT_BYTES_MAX = 32 << 20  # of new records that are kept for followers
KEPT_LOOKS_MAX = 1_000
AHEAD_RECORDS_MAX = 200_000  # of a partition, that are read before a follower asks
Piece = list[Chunk | Gap]
Answered = TypeVar("Answered")


class FollowedLog:
    """views: as of the last look, by name"""

    def __init__(self, partitions: PartitionViews) -> None:
        self._partitions = partitions
        self._threads = ThreadPoolExecutor(READS_MAX, "log")
        self._moved, self._moved_now, self._begun = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._followers = self._urgent = 0
        self._kept: OrderedDict[tuple[str, int], tuple[int, Piece, int]] = OrderedDict()  # end, records, bytes
        self._kept_bytes = 0
        self._looking = asyncio.Lock()
        self.views: dict[str, PartitionView] = {}

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def moved(self) -> asyncio.Event:
        """Is set when the log has grown, after this was asked for: ask before reading."""
        return self._moved

    @property
    def moved_now(self) -> asyncio.Event:
        """The same at once, for who is `urgent`."""
        return self._moved_now

    def wake(self) -> None:
        """Have every follower look again."""
        self._moved.set()
        self._moved = asyncio.Event()

    @property
    def look_seconds(self) -> float:
        """Between two looks for followers."""
        return min(LOOK_SECONDS_MAX, max(LOOK_SECONDS, A_FOLLOWER_SECONDS * self._followers))

    @contextmanager
    def followed(self) -> Iterator[None]:
        """While somebody follows the end of the log."""
        self._followers += 1
        self._begun.set()
        try:
            yield
        finally:
            self._followers -= 1
            self._rest()

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """While somebody waits for what is written right now."""
        self._urgent += 1
        self._begun.set()
        try:
            yield
        finally:
            self._urgent -= 1
            self._rest()

    def _rest(self) -> None:
        if not self._followers and not self._urgent:
            self._begun.clear()
            self._kept.clear()
            self._kept_bytes = 0

    async def run(self) -> None:
        """Look while somebody follows, until cancelled."""
        loop = asyncio.get_running_loop()
        woken_at, has_moved = 0.0, False
        while True:
            await self._begun.wait()
            try:
                has_moved |= await self.look()
            except OSError:
                has_moved = True  # followers find out by reading
            self._moved_now.set()
            self._moved_now = asyncio.Event()
            if has_moved and loop.time() - woken_at >= self.look_seconds:
                woken_at, has_moved = loop.time(), False
                self.wake()
            await asyncio.sleep(URGENT_SECONDS if self._urgent else self.look_seconds)

    async def look(self) -> bool:
        """Whether there is more than before. raises: OSError"""
        async with self._looking:
            return self._take(*await self.on_thread(partial(self._look, self.views)))

    def _take(self, found: dict[str, PartitionView], ahead: list[tuple[tuple[str, int, int], Piece]]) -> bool:
        has_moved = any(
            name not in self.views or self.views[name].end_lsn != view.end_lsn for name, view in found.items()
        )
        self.views = found
        for (name, begin, end), piece in ahead:
            size = sum(len(each.rows) + len(each.frames) for each in piece if isinstance(each, Chunk))
            self._kept[name, begin] = end, piece, size
            self._kept_bytes += size
        while self._kept_bytes > KEPT_BYTES_MAX or len(self._kept) > KEPT_LOOKS_MAX:
            _, (_, _, size) = self._kept.popitem(last=False)
            self._kept_bytes -= size
        return has_moved

    def _look(
        self, before: dict[str, PartitionView]
    ) -> tuple[dict[str, PartitionView], list[tuple[tuple[str, int, int], Piece]]]:
        """On a thread: the views, and what was written since those before."""
        found = {view.name: view for view in self._partitions.current()}
        ahead = []
        for name, view in found.items():
            known = before.get(name)
            if known is not None and known.end_lsn < view.end_lsn <= known.end_lsn + AHEAD_RECORDS_MAX:
                ahead.append(((name, known.end_lsn, view.end_lsn), whole_piece(view, known.end_lsn, view.end_lsn)))
        return found, ahead

    def maybe_kept(self, name: str, first_lsn: int, end_lsn: int) -> Piece | None:
        """These records, if the last looks have read them."""
        found: Piece = []
        while first_lsn < end_lsn:
            end, piece, _ = self._kept.get((name, first_lsn), (0, [], 0))
            if not first_lsn < end <= end_lsn:
                return None
            found += piece
            first_lsn = end
        return found

    async def on_thread(self, call: Callable[[], Answered]) -> Answered:
        """Read the log. raises: what the call raises"""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def whole_piece(view: PartitionView, first_lsn: int, end_lsn: int) -> Piece:
    """raises: OSError"""
    return list(view.chunks(first_lsn, end_lsn))
