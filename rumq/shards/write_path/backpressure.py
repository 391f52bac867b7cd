"""Backpressure with two limits: bulk senders pause at what they are allowed unwritten if anyone awaits an
acknowledgement from the partition; everyone pauses at `pending_bytes_max`.

The records of others would be written, acknowledged and shown behind a bulk sender's: beside who sends a little its
groups are smaller, and it rests between them. What another shard writes, or other nodes copy, is allowed 2 MiB: it is
on its way for longer than a group takes. Knows no socket."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from commitlog.log.partition import Partition
from commitlog.log.partition_types import AckSource
from commitlog.log.store import Store
from router.matching.feed import Feed
from rumq.loop.ports import EventSink
from rumq.loop.stage import Stage
from rumq.session.connection.pending_acks import AckTracker
from rumq.session.ports.backpressure import BackpressureBits
from rumq.session.ports.clock import TurnClock
from rumq.shards.write_path.bulk_allowance import BulkAllowance
from rumq.shards.write_path.group_commit import GroupCommit

SHARED_SECONDS = 0.05  # after the last who sent a little
RESTS_MAX = 4.0  # after they have sent in bulk: groups of others do not have bulk senders rest for longer


class WatchedPart:
    """What waits of a partition. partition, near: as `source` and `feed` for compiled callers, if they are of here

    shared_until: bulk senders share it with who sends a little, monotonic seconds
    bulk_at: when one of them last sent something"""

    __slots__ = ("allowance", "bulk_at", "feed", "index", "near", "partition", "shared_until", "source")

    def __init__(self, index: int, source: AckSource, feed: Feed, allowance: BulkAllowance) -> None:
        self.index, self.source, self.feed, self.allowance = index, source, feed, allowance
        self.partition = source if isinstance(source, Partition) else None
        self.shared_until = self.bulk_at = 0.0
        self.near = feed if isinstance(feed, Feed) else None

    def pending(self) -> int:
        """Bytes that are not written, or are written and whose topics are still being matched."""
        unwritten = self.partition.pending_bytes if self.partition is not None else self.source.pending_bytes
        if self.near is not None and not self.near.deferred[0]:
            return unwritten
        return unwritten + self.feed.deferred_bytes

    def is_crowded(self, pending: int, now: float) -> bool:
        """Whether bulk senders are to wait, with so many bytes pending and acknowledgements awaited."""
        allowance = self.allowance
        if now >= self.shared_until:
            return pending > allowance.bytes
        if pending > allowance.shared_bytes:
            return True
        return now < allowance.rests_until and now - self.bulk_at < RESTS_MAX * allowance.rest_seconds


class Backpressure(Stage):
    """bits: which partitions are over their limits now"""

    def __init__(
        self, store: Store, feeds: list[Feed], commit: GroupCommit, acks: AckTracker, events: EventSink,
        clock: TurnClock, *, pending_bytes_max: int, uncommitted: Callable[[int], int] | None = None,
    ) -> None:  # fmt: skip
        """uncommitted: bytes of a partition that are written here, and wait for copies; None on a node alone"""
        self._commit, self._acks, self._events, self._clock = commit, acks, events, clock
        self.pending_bytes_max, self._uncommitted = pending_bytes_max, uncommitted
        self._parts = [
            WatchedPart(p.index, p.ack_source, feeds[p.index], self._allowance(p.index)) for p in store.partitions
        ]
        self.bits = BackpressureBits()
        self._slowed: list[tuple[Any, int, bool]] = []

    def _allowance(self, index: int) -> BulkAllowance:
        allowance = self._commit.allowance(index) if self._uncommitted is None else None
        return allowance if allowance is not None else BulkAllowance()

    def end_turn(self) -> None:
        """Determine which partitions are over their limits now; report when that begins and ends."""
        behind = crowded = 0
        now, modest, bulk = self._clock.monotonic, self.bits.modest, self.bits.bulk
        self.bits.modest = self.bits.bulk = 0
        for part in self._parts:
            if modest >> part.index & 1:
                part.shared_until = now + SHARED_SECONDS
            if bulk >> part.index & 1:
                part.bulk_at = now
            pending = part.pending()
            if self._uncommitted is not None:
                pending += self._uncommitted(part.index)
            if part.is_crowded(pending, now) and self._acks.is_awaited(part.index):
                crowded |= 1 << part.index
            if pending > self.pending_bytes_max:
                behind |= 1 << part.index
        self.bits.crowded, before = crowded | behind, self.bits.behind
        if behind != before:
            self.bits.behind = behind
            if not before:
                self._events.tell("publish.slowed", pending_bytes=self._commit.pending_bytes)
            elif not behind:
                self._events.tell("publish.resumed", pending_bytes=self._commit.pending_bytes)
        if self._slowed:
            slowed, self._slowed = self._slowed, []
            for link, parts, bulk in slowed:
                if parts & (self.bits.crowded if bulk else behind):
                    self._slowed.append((link, parts, bulk))
                else:
                    link.transport.resume_reading()

    def end_second_step(self) -> None:
        """As `end_turn`, behind a second step of the same turn: it may have made room, and has not taken any."""
        if self.bits.crowded:
            self.end_turn()

    def next_deadline(self) -> float:
        """When a bulk sender that rests goes on, if nothing comes; inf: none does."""
        due = inf
        if self._slowed:
            for part in self._parts:
                if self._clock.monotonic < part.allowance.rests_until < due:
                    due = part.allowance.rests_until
        return due

    def pause_publisher(self, link: Any, bulk: bool) -> None:
        """Pause a connection that has published to a partition over its limit. bulk: it is a bulk sender"""
        parts = (self.bits.crowded if bulk else self.bits.behind) & link.wire.touched
        self._slowed.append((link, parts, bulk))
        link.transport.pause_reading()
