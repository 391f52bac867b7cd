"""The whole broker in a few numbers, as one shard knows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rumq.loop.ports import Clock
from rumq.shards.admin.listings.listings import Answer
from rumq.shards.admin.listings.partition_row import partition_row
from rumq.shards.retention.disk_space import DiskStatistics
from rumq.shards.stats.counters import CountedShard


class StatusQuery:
    """The whole broker in a few numbers. about: version, shards and listeners, which shard 0 says for all"""

    def __init__(
        self,
        shard: CountedShard,
        clock: Clock,
        disk: Callable[[], DiskStatistics],
        is_full: Callable[[], bool],
    ) -> None:
        """is_full: whether publishers are refused for want of space"""
        self._shard, self._clock, self._disk, self._is_full = shard, clock, disk, is_full
        self._started = clock.monotonic
        self.about: dict[str, Any] = {}

    def answer(self, connected: int) -> Answer:
        """connected: clients, here"""
        own = self._shard.store.own
        return {
            **(self._of_the_broker() if self._shard.index == 0 else {}),
            "memory_bytes": memory_bytes(),
            "log_bytes": sum(p.segments.bytes for p in own),
            "trimmed_for_space_records": self._disk().removed_records,
            "disk_is_full": int(self._is_full()),
            "connected": connected,
            "sessions": len(self._shard.registry),
            "retained": len(self._shard.router.retained),
            "undelivered": self._shard.drop_counters.total(),
            "handed_over": self._shard.totals.handed_over,
            "taken_over": self._shard.totals.taken_over,
            "partitions": [partition_row(each, self._shard.index) for each in own],
        }

    def _of_the_broker(self) -> Answer:
        disk = self._disk()
        return {
            **self.about,
            "uptime_seconds": round(self._clock.monotonic - self._started, 1),
            "disk": {
                "free_bytes": disk.free_bytes,
                "total_bytes": disk.total_bytes,
                "free_wanted": disk.free_wanted,
                "bytes_per_second": round(disk.bytes_per_second),
                "full_in_seconds": None if disk.seconds_to_full is None else round(disk.seconds_to_full),
                "then": "the oldest segments go" if disk.yields else "publishers are refused",
            },
        }


def memory_bytes() -> int:
    """Of this process, without the files that it has mapped; 0 where that is not known."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))
    except (OSError, StopIteration):
        return 0
