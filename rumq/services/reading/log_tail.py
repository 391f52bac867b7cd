"""The newest records of every partition, read once for all who follow them, and told when there are more.

While somebody follows, one look at the files every 50 ms, or every 20 ms while a publisher waits for ids; none while
nobody does. What was written since the last look is read in one go on a thread and kept until the next, so that
followers at the end of the log read no file. docs/decisions/0050-watchers-read-files.md, 0060-grpc.md"""

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
READS_MAX = 4  # threads that read the log
KEPT_BYTES_MAX = 32 << 20  # of new records that are kept for followers
AHEAD_RECORDS_MAX = 200_000  # of a partition, that are read before a follower asks
Piece = list[Chunk | Gap]
Answered = TypeVar("Answered")


class LogTail:
    """views: as of the last look, by name"""

    def __init__(self, partitions: PartitionViews) -> None:
        self._partitions = partitions
        self._threads = ThreadPoolExecutor(READS_MAX, "log")
        self._moved, self._begun = asyncio.Event(), asyncio.Event()
        self._followers = self._urgent = 0
        self._kept: OrderedDict[tuple[str, int, int], tuple[Piece, int]] = OrderedDict()
        self._kept_bytes = 0
        self._looking = asyncio.Lock()
        self.views: dict[str, PartitionView] = {}

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def moved(self) -> asyncio.Event:
        """Is set when the log has grown, after this was asked for: ask before reading."""
        return self._moved

    def wake(self) -> None:
        """Have every follower look again."""
        self._moved.set()
        self._moved = asyncio.Event()

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
        while True:
            await self._begun.wait()
            try:
                if await self.look():
                    self.wake()
            except OSError:
                self.wake()  # followers find out by reading
            await asyncio.sleep(URGENT_SECONDS if self._urgent else LOOK_SECONDS)

    async def look(self) -> bool:
        """Whether there is more than before. raises: OSError"""
        async with self._looking:
            return self._take(*await self.on_thread(partial(self._look, self.views)))

    def _take(self, found: dict[str, PartitionView], ahead: list[tuple[tuple[str, int, int], Piece]]) -> bool:
        has_moved = any(
            name not in self.views or self.views[name].end_lsn != view.end_lsn for name, view in found.items()
        )
        self.views = found
        for key, piece in ahead:
            size = sum(len(each.rows) + len(each.frames) for each in piece if isinstance(each, Chunk))
            self._kept[key] = piece, size
            self._kept_bytes += size
        while self._kept_bytes > KEPT_BYTES_MAX:
            _, (_, size) = self._kept.popitem(last=False)
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
        """These records, if a look has just read them."""
        kept = self._kept.get((name, first_lsn, end_lsn))
        return None if kept is None else kept[0]

    async def on_thread(self, call: Callable[[], Answered]) -> Answered:
        """Read the log. raises: what the call raises"""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def whole_piece(view: PartitionView, first_lsn: int, end_lsn: int) -> Piece:
    """raises: OSError"""
    return list(view.chunks(first_lsn, end_lsn))
