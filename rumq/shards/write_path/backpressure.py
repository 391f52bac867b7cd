"""Backpressure with two limits: bulk senders pause at 2 MiB unwritten if anyone awaits an acknowledgement from the
partition; everyone pauses at `pending_bytes_max`.

The records of others would be written, acknowledged and shown behind a bulk sender's. Knows no socket."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commitlog.log.partition import Partition
from commitlog.log.partition_types import AckSource
from commitlog.log.store import Store
from router.matching.feed import Feed
from rumq.loop.ports import EventSink
from rumq.session.connection.pending_acks import AckTracker
from rumq.shards.write_path.group_commit import GroupCommit

CROWDED_BYTES = 2 << 20  # a few ms of a disk


class WatchedPart:
    """What waits of a partition. partition: as `source`, if it is of this shard, for compiled callers"""

    __slots__ = ("feed", "index", "partition", "source")

    def __init__(self, index: int, source: AckSource, feed: Feed) -> None:
        self.index, self.source, self.feed = index, source, feed
        self.partition = source if isinstance(source, Partition) else None

    def pending(self) -> int:
        """Bytes that are not written, or are written and whose topics are still being matched."""
        unwritten = self.partition.pending_bytes if self.partition is not None else self.source.pending_bytes
        return unwritten + self.feed.deferred_bytes


class Backpressure:
    """Bit p of `behind`: partition p is over the limit for everyone; of `crowded`: over the limit for bulk senders."""

    def __init__(
        self, store: Store, feeds: list[Feed], commit: GroupCommit, acks: AckTracker, events: EventSink, *,
        pending_bytes_max: int, uncommitted: Callable[[int], int] | None = None,
    ) -> None:  # fmt: skip
        """uncommitted: bytes of a partition that are written here, and wait for copies; None on a node alone"""
        self._commit, self._acks, self._events = commit, acks, events
        self.pending_bytes_max, self._uncommitted = pending_bytes_max, uncommitted
        self._parts = [WatchedPart(p.index, p.ack_source, feeds[p.index]) for p in store.partitions]
        self.behind = self.crowded = 0
        self._slowed: list[tuple[Any, int, bool]] = []

    def end_turn(self) -> None:
        """Determine which partitions are over their limits now; report when that begins and ends."""
        behind = crowded = 0
        for part in self._parts:
            pending = part.pending()
            if self._uncommitted is not None:
                pending += self._uncommitted(part.index)
            if pending > CROWDED_BYTES and self._acks.is_awaited(part.index):
                crowded |= 1 << part.index
            if pending > self.pending_bytes_max:
                behind |= 1 << part.index
        self.crowded = crowded | behind
        if behind != self.behind:
            self.behind, before = behind, self.behind
            if not before:
                self._events.tell("publish.slowed", pending_bytes=self._commit.pending_bytes)
            elif not behind:
                self._events.tell("publish.resumed", pending_bytes=self._commit.pending_bytes)
        if self._slowed:
            slowed, self._slowed = self._slowed, []
            for link, parts, bulk in slowed:
                if parts & (self.crowded if bulk else behind):
                    self._slowed.append((link, parts, bulk))
                else:
                    link.transport.resume_reading()

    def end_second_step(self) -> None:
        """As `end_turn`, behind a second step of the same turn: it may have made room, and has not taken any."""
        if self.crowded:
            self.end_turn()

    def pause_publisher(self, link: Any, bulk: bool) -> None:
        """Pause a connection that has published to a partition over its limit. bulk: it is a bulk sender"""
        parts = (self.crowded if bulk else self.behind) & link.wire.touched
        self._slowed.append((link, parts, bulk))
        link.transport.pause_reading()
