"""Consumer lag: how far each session is behind and how fast it goes, checked every few seconds and reported when far.

Counts are read where they are kept anyway, some sessions a turn: no message costs anything."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import NamedTuple

from rumq.loop.ports import Clock, EventSink, Timers
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.shards.stats.session_lag import SessionLag

INTERVAL_SECONDS = 10.0
SESSIONS_A_TURN = 128
FARTHEST = 20
BACK_PART = 2  # a consumer has caught up below this part (1/2) of the bound that it exceeded


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


class LagTotals:
    """The lag of all sessions at one check.

    records: that they have not read, sessions: how many are behind, oldest_seconds: age of the oldest record that one
    of them has not read, of those whose partitions are here"""

    def __init__(self) -> None:
        self.records = self.sessions = 0
        self.oldest_seconds = 0.0
        self._heap: list[tuple[int, str]] = []

    def add(self, client_id: str, records: int, seconds: float | None) -> None:
        """Count a session that is behind."""
        self.records += records
        self.sessions += 1
        self.oldest_seconds = max(self.oldest_seconds, seconds or 0.0)
        heapq.heappush(self._heap, (records, client_id))
        if len(self._heap) > FARTHEST:
            heapq.heappop(self._heap)

    @property
    def farthest(self) -> list[tuple[int, str]]:
        """(records, client id) of the FARTHEST that are farthest behind, the farthest first."""
        return sorted(self._heap, reverse=True)

    @property
    def records_max(self) -> int:
        """Of the session that is farthest behind."""
        return max(self._heap)[0] if self._heap else 0


class LagAlarm:
    """Reports sessions whose lag exceeds a bound, once, and once more when it is over.

    records_max, seconds_max: more is reported; 0: any lag is fine"""

    def __init__(self, events: EventSink) -> None:
        self._events = events
        self.records_max = self.seconds_max = 0
        self._lagging: set[str] = set()  # keys of sessions that were reported

    def forget_all_but(self, sessions: Collection[str]) -> None:
        """Sessions have ended. sessions: keys of those that there are"""
        self._lagging.intersection_update(sessions)

    def check(self, session: Session, records: int, seconds: float | None) -> None:
        if not self.records_max and not self.seconds_max:
            return
        is_reported = session.key in self._lagging
        part = BACK_PART if is_reported else 1
        far = bool(self.records_max) and records > self.records_max / part
        far |= bool(self.seconds_max) and (seconds or 0.0) > self.seconds_max / part
        if far == is_reported:
            return
        (self._lagging.add if far else self._lagging.discard)(session.key)
        self._events.tell(
            "consumer.lagging" if far else "consumer.caught_up", client_id=session.client_id, records=records,
            seconds=None if seconds is None else round(seconds, 1), connected=session.link is not None,
        )  # fmt: skip


class ConsumerLag:
    """totals: as of the last check of all sessions"""

    def __init__(self, registry: Registry, lag: SessionLag, clock: Clock, timers: Timers, alarm: LagAlarm) -> None:
        self._registry, self.lag, self._clock, self._timers, self.alarm = registry, lag, clock, timers, alarm
        self._counted: dict[str, SessionCounts] = {}
        self._left: list[Session] = []  # sessions that the running check has still to look at
        self.totals = self._adding = LagTotals()

    def begin(self) -> None:
        """Check all sessions now, and every interval."""
        self._timers.later(INTERVAL_SECONDS, self.begin)
        if self._left:
            return
        sessions = self._registry.sessions
        self._left, self._adding = list(sessions.values()), LagTotals()
        for known in (key for key in list(self._counted) if key not in sessions):
            del self._counted[known]
        self.alarm.forget_all_but(sessions.keys())
        self._timers.next_turn(self._go_on)

    def rates(self, session: Session) -> SessionCounts | None:
        """As of the last check; None for a session that came since."""
        return self._counted.get(session.key)

    def _go_on(self) -> None:
        some = self._left[-SESSIONS_A_TURN:]
        del self._left[-SESSIONS_A_TURN:]
        now = self._clock.monotonic  # one object for all of them
        for session in some:
            if not session.ended:
                self._check(session, now)
        if self._left:
            self._timers.next_turn(self._go_on)
        else:
            self.totals = self._adding

    def _check(self, session: Session, now: float) -> None:
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
        records, behind_seconds = self.lag.session_lag(session)
        if records:
            self._adding.add(session.client_id, records, behind_seconds)
        self.alarm.check(session, records, behind_seconds)


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
