"""Publishers wait when the partition they publish to is behind: their sockets are not read, and nobody else notices.

Where somebody waits for acknowledgements, who sends much at once waits soon, for what the others send is written behind
it, and acknowledged and shown only then; everybody else waits when memory must be saved.
Knows no socket: a link is told to pause, and to go on."""

from __future__ import annotations

from typing import Any

from commitlog.store import Store
from router.feed import Feed
from rumq.shards.turn.ports import EventSink
from rumq.shards.write_path.ack_tracker import AckTracker
from rumq.shards.write_path.group_commit import GroupCommit

CROWDED_BYTES = 2 << 20  # a few ms of a disk


class Backpressure:
    """Bit p says that partition p has more unwritten bytes than it may: `behind`, for anybody; `crowded`, for those
    who send much at once."""

    def __init__(
        self, store: Store, feeds: list[Feed], commit: GroupCommit, acks: AckTracker, events: EventSink, *,
        pending_bytes_max: int,
    ) -> None:  # fmt: skip
        self._commit, self._acks, self._events = commit, acks, events
        self.pending_bytes_max = pending_bytes_max
        self._parts = [(p.index, 1 << p.index, p.ack_source, feeds[p.index]) for p in store.partitions]
        self.behind = self.crowded = 0
        self._slowed: list[tuple[Any, int, bool]] = []

    def look(self) -> None:
        """At the end of a turn: which partitions are behind now; tell when that begins and ends."""
        behind = crowded = 0
        for index, bit, source, feed in self._parts:
            pending = source.pending_bytes + feed.deferred_bytes
            if pending > CROWDED_BYTES and self._acks.is_awaited(index):
                crowded |= bit
            if pending > self.pending_bytes_max:
                behind |= bit
        self.crowded = crowded | behind
        if behind != self.behind:
            self.behind, before = behind, self.behind
            if not before:
                self._events.tell("publish.slowed", pending_bytes=self._commit.pending_bytes)
            elif not behind:
                self._events.tell("publish.resumed", pending_bytes=self._commit.pending_bytes)
        if self._slowed:
            slowed, self._slowed = self._slowed, []
            for link, parts, much in slowed:
                if parts & (self.crowded if much else behind):
                    self._slowed.append((link, parts, much))
                else:
                    link.transport.resume_reading()

    def slow(self, link: Any, much: bool) -> None:
        """The link has published to a partition that is behind. much: it has sent much at once"""
        parts = (self.crowded if much else self.behind) & link.wire.touched
        self._slowed.append((link, parts, much))
        link.transport.pause_reading()
