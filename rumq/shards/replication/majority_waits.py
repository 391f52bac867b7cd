"""What waits for a majority of the copies: groups that are written here, and clients that wait to be acknowledged."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable

from rumq.loop.ports import Clock, EventSink
from rumq.session.state.histogram import Histogram
from rumq.shards.replication.feeding.copies import PartitionCopies
from rumq.shards.replication.leader_disk import LeaderCommit

WAIT_SECONDS_MAX = 10.0  # that a client waits for a majority


class MajorityWaits:
    """acknowledged: how long groups have waited, in seconds"""

    def __init__(self, shard: int, commit: Callable[[], LeaderCommit], clock: Clock, events: EventSink) -> None:
        """commit: group commit, which exists later"""
        self._shard, self._commit, self._clock, self._events = shard, commit, clock, events
        self.acknowledged = Histogram()
        self._look_at = 0.0

    def written(self, copied: PartitionCopies, end: int) -> None:
        """A group has been written here, and with it everything below an lsn."""
        if copied.is_quorum and end > copied.partition.committed_lsn:
            copied.unsettled.append((end, copied.group_bytes, self._clock.monotonic))
            copied.unsettled_bytes += copied.group_bytes
        copied.group_bytes = 0

    def committed(self, copied: PartitionCopies, lsn: int) -> None:
        """A majority has everything below an lsn."""
        if not copied.is_quorum:
            return
        unsettled = copied.unsettled
        now = self._clock.monotonic
        while unsettled and unsettled[0][0] <= lsn:
            _, size, written_at = unsettled.popleft()
            copied.unsettled_bytes -= size
            self.acknowledged.observe(now - written_at)
        self._commit().replicated(copied.partition.index, lsn)

    def look(self, now: float) -> None:
        """Who waits for copies that do not come tries elsewhere, or again.

        docs/explanation/replication.md, "Below a majority".
        now: monotonic seconds"""
        if now < self._look_at:
            return
        self._look_at = now + 1.0
        count = self._commit().give_up(WAIT_SECONDS_MAX, "too few copies of the log answer")
        if count:
            self._events.tell("cluster.waits_ended", shard=self._shard, clients=count)
