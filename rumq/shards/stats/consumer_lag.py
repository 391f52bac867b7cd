"""Consumer lag: how far each session is behind and how fast it goes, checked every few seconds and reported when far.

Counts are read where they are kept anyway, some sessions a turn: no message costs anything."""

from __future__ import annotations

import heapq
from typing import NamedTuple

from commitlog import Partition
from router.matching.feed import Feed
from router.readers.reader import Reader
from rumq.loop.ports import Clock, EventSink, Timers
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session

INTERVAL_SECONDS = 10.0
SESSIONS_A_TURN = 128
FARTHEST = 20
BACK_PART = 2  # a consumer is back when it is behind by less than half of what was too much


class SessionCounts(NamedTuple):
    """A session's counts at a time, and its rates since the time before, in messages a second."""

    at: float
    published: int
    delivered: int
    published_rate: float = 0.0
    delivered_rate: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_in_rate: float = 0.0
    bytes_out_rate: float = 0.0


class ConsumerLag:
    """lag_records_max, lag_seconds_max: more is reported; 0: any lag is fine

    As of the last check of all: records_total: lag of all sessions, records_max: of the one that is farthest behind,
    seconds_max: age of the oldest record that one has not read, of those whose partitions are here,
    sessions_behind: with any lag, farthest: (records, client id) of the FARTHEST that are farthest behind"""

    def __init__(self, registry: Registry, feeds: list[Feed], clock: Clock, timers: Timers, events: EventSink) -> None:
        self._registry, self._feeds = registry, feeds
        self._clock, self._timers, self._events = clock, timers, events
        self.lag_records_max = self.lag_seconds_max = 0
        self._counted: dict[str, SessionCounts] = {}
        self._lagging: set[str] = set()
        self._left: list[Session] = []
        self.records_total = self.records_max = self.sessions_behind = 0
        self.seconds_max = 0.0
        self.farthest: list[tuple[int, str]] = []
        self._sums = (0, 0)  # of the check under way: records, sessions behind
        self._oldest_seconds = 0.0
        self._heap: list[tuple[int, str]] = []

    def begin(self) -> None:
        """Check all sessions now, and every interval."""
        self._timers.later(INTERVAL_SECONDS, self.begin)
        if self._left:
            return
        sessions = self._registry.sessions
        self._left = list(sessions.values())
        for known in (key for key in list(self._counted) if key not in sessions):
            del self._counted[known]
        self._lagging.intersection_update(sessions)
        self._timers.next_turn(self._go_on)

    def rates(self, session: Session) -> SessionCounts | None:
        """As of the last check; None for a session that came since."""
        return self._counted.get(session.key)

    def _go_on(self) -> None:
        some = self._left[-SESSIONS_A_TURN:]
        del self._left[-SESSIONS_A_TURN:]
        for session in some:
            if not session.ended:
                self._check(session)
        if self._left:
            self._timers.next_turn(self._go_on)
            return
        self.records_total, self.sessions_behind = self._sums
        self.farthest = sorted(self._heap, reverse=True)
        self.records_max = self.farthest[0][0] if self.farthest else 0
        self.seconds_max, self._oldest_seconds = self._oldest_seconds, 0.0
        self._sums, self._heap = (0, 0), []

    def _check(self, session: Session) -> None:
        now = self._clock.monotonic
        published, delivered = counts_of(session)
        came, went = bytes_of(session)
        before = self._counted.get(session.key)
        if before is not None and now > before.at:
            seconds = now - before.at
            self._counted[session.key] = SessionCounts(
                now, published, delivered,
                max(0, published - before.published) / seconds, max(0, delivered - before.delivered) / seconds,
                came, went, max(0, came - before.bytes_in) / seconds, max(0, went - before.bytes_out) / seconds,
            )  # fmt: skip
        else:
            self._counted[session.key] = SessionCounts(now, published, delivered, 0.0, 0.0, came, went)
        records, behind_seconds = self.lag(session)
        if records:
            self._sums = self._sums[0] + records, self._sums[1] + 1
            self._oldest_seconds = max(self._oldest_seconds, behind_seconds or 0.0)
            heapq.heappush(self._heap, (records, session.client_id))
            if len(self._heap) > FARTHEST:
                heapq.heappop(self._heap)
        if self.lag_records_max or self.lag_seconds_max:
            self._report(session, records, behind_seconds)

    def _report(self, session: Session, records: int, seconds: float | None) -> None:
        is_reported = session.key in self._lagging
        part = BACK_PART if is_reported else 1
        far = bool(self.lag_records_max) and records > self.lag_records_max / part
        far |= bool(self.lag_seconds_max) and (seconds or 0.0) > self.lag_seconds_max / part
        if far == is_reported:
            return
        (self._lagging.add if far else self._lagging.discard)(session.key)
        self._events.tell(
            "consumer.lagging" if far else "consumer.caught_up", client_id=session.client_id, records=records,
            seconds=None if seconds is None else round(seconds, 1), connected=session.link is not None,
        )  # fmt: skip

    def lag(self, session: Session) -> tuple[int, float | None]:
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
        """As `lag`, of one reader."""
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


def counts_of(session: Session) -> tuple[int, int]:
    """(published, delivered) so far."""
    published, delivered = session.published, session.delivered
    link = session.link
    if link is not None:
        published += link.wire.published
        delivered += link.flow.delivered
    return published, delivered


def bytes_of(session: Session) -> tuple[int, int]:
    """Bytes of the client's connection, read and sent; none of one that is away."""
    link = session.link
    if link is None:
        return 0, 0
    transport = link.transport
    return link.bytes_in + transport.bytes_in, link.bytes_out + transport.bytes_out
