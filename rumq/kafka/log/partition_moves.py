"""Waits until one of some partitions has more than before. They are followed meanwhile, however long that is."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import trio

from rumq.kafka.log.served_log import LogPartition


class PartitionMoves:
    """Within it no move is missed: one that comes between two waits ends the second one at once."""

    def __init__(self, partitions: Sequence[LogPartition]) -> None:
        self._partitions = partitions
        self._moved = trio.Event()

    def __enter__(self) -> PartitionMoves:
        for each in self._partitions:
            each.wait_with(self._move)
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        for each in self._partitions:
            each.wait_no_longer_with(self._move)

    def _move(self) -> None:
        self._moved.set()

    async def wait(self, deadline: float) -> None:
        """Until there is more, or the time is over."""
        with trio.move_on_at(deadline):
            await self._moved.wait()
        self._moved = trio.Event()
