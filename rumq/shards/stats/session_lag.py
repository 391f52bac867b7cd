"""The lag of a session or a reader: how many records it has not read yet, and how old the oldest of them is.

Nothing is kept here: each answer is read from the readers' cursors and the feeds of the partitions."""

from __future__ import annotations

from collections.abc import Sequence

from commitlog import Partition
from router.matching.feed import Feed
from router.readers.reader import Reader
from rumq.loop.ports import Clock
from rumq.session.state.session import Session


class SessionLag:
    def __init__(self, feeds: Sequence[Feed], clock: Clock) -> None:
        self._feeds, self._clock = feeds, clock

    def session_lag(self, session: Session) -> tuple[int, float | None]:
        """(records that its readers have not read yet, age of the oldest of them in seconds).

        The age is that of the oldest in partitions of this shard; None: there is none. Cost: a look at each reader and
        partition"""
        records, oldest_us = 0, 0
        for reader in session.subscriber.readers():
            behind, at = self._behind(reader)
            records += behind
            oldest_us = older(oldest_us, at)
        return records, self._age(records, oldest_us)

    def reader_lag(self, reader: Reader) -> tuple[int, float | None]:
        """As `session_lag`, of one reader."""
        records, at = self._behind(reader)
        return records, self._age(records, at)

    def _age(self, records: int, oldest_us: int) -> float | None:
        if not records:
            return 0.0
        return max(0.0, (self._clock.now_us - oldest_us) / 1e6) if oldest_us else None

    def _behind(self, reader: Reader) -> tuple[int, int]:
        """(records, time of the oldest here; 0: not known)"""
        records, oldest_us = 0, 0
        for feed in self._feeds:
            if feed.partition.is_volatile or reader.is_live(feed.index):
                continue  # nobody is behind the broker's own statistics, of which only the last ones are there
            behind = feed.mark(reader.group.wants.committed_only) - reader.cursors[feed.index]
            if behind <= 0:
                continue
            records += behind
            partition = feed.partition
            if isinstance(partition, Partition):
                oldest_us = older(oldest_us, partition.time_near(reader.cursors[feed.index]))
        return records, oldest_us


def older(one_us: int, other_us: int) -> int:
    """The earlier of two times, of which 0 is none."""
    return min(one_us or other_us, other_us or one_us)
