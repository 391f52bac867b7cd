"""Long answers for the operator: clients and topics, sorted, filtered and bounded, made some at a time.

A turn goes through so many and no more, however many there are."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from commitlog import Store
from rumq.admin.merging import CLIENT_SORTS, TOPIC_SORTS, first_rows
from rumq.admin.requests import ROWS_MAX, ROWS_USUAL
from rumq.loop.ports import Clock, Timers
from rumq.mqtt.topics import matches
from rumq.session.protocol.connected import Connected
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.session.state.session_owner import BROKER, GATEWAY
from rumq.shards.stats.consumer_lag import ConsumerLag, bytes_of, counts_of

Answer = dict[str, Any]
Done = Callable[[Answer], None]
Later = Callable[[Done], None]
MayRead = Callable[[str], bool]  # of a topic, whether the reader of an answer may know of it
CLIENTS_A_TURN, TOPICS_A_TURN = 128, 10_000
PROTOCOLS = {3: "3.1", 4: "3.1.1", 5: "5"}


def every_topic(topic: str) -> bool:
    return True


class Listing:
    """Goes through rows, keeps the first of them in an order, and calls back. raises: ValueError for another order"""

    def __init__(
        self, timers: Timers, rows: Iterator[Answer | None], question: Answer, sorts: dict[str, str], name: str,
        a_turn: int, done: Done,
    ) -> None:  # fmt: skip
        """rows: None stands for one that is not wanted"""
        self._timers, self._rows, self._name, self._a_turn, self._done = timers, rows, name, a_turn, done
        self._sort = question.get("sort") or next(iter(sorts))
        if self._sort not in sorts:
            raise ValueError(f"cannot sort by {self._sort!r}; one of {', '.join(sorts)}")
        self._key = sorts[self._sort]
        limit = question.get("limit")
        # With the rows that are skipped: which these are is known once all shards have answered.
        until = (int(limit) if limit is not None else ROWS_USUAL) + int(question.get("offset") or 0)
        self._limit = min(until, ROWS_MAX)
        self._kept: list[Answer] = []
        self._seen = 0

    def go_on(self) -> None:
        some = list(islice(self._rows, self._a_turn))
        wanted = [row for row in some if row is not None]
        self._seen += len(wanted)
        self._kept = first_rows([*self._kept, *wanted], self._key, self._limit)
        if len(some) == self._a_turn:
            self._timers.next_turn(self.go_on)
        else:
            self._done({self._name: self._kept, "left_out": self._seen - len(self._kept)})


class ClientListing:
    def __init__(
        self, registry: Registry, consumers: ConsumerLag, drop_counters: DropCounters, clock: Clock, timers: Timers
    ) -> None:
        self._registry, self._consumers, self._drop_counters = registry, consumers, drop_counters
        self._clock, self._timers = clock, timers

    def list(self, question: Answer, done: Done) -> None:
        """question: "client" (a pattern with * and ?), "user", "sort" and "limit", each may be absent"""
        pattern, user = question.get("client"), question.get("user")

        def rows() -> Iterator[Answer | None]:
            for session in [*self._registry.sessions.values()]:
                named = pattern is None or fnmatchcase(session.client_id, pattern)
                owned = user is None or (session.owner is not None and session.owner.user == user)
                yield self.row(session) if named and owned and not session.ended else None

        Listing(self._timers, rows(), question, CLIENT_SORTS, "clients", CLIENTS_A_TURN, done).go_on()

    def row(self, session: Session) -> Answer:
        """behind_records, behind_seconds: of the log, that its readers have not read yet; in_flight: sent at QoS 1 or 2
        and not acknowledged; rates: as of the last check, every 10 s, in messages a second"""
        link = session.link
        published, delivered = counts_of(session)
        records, seconds = self._consumers.lag.session_lag(session)
        rates = self._consumers.rates(session)
        bytes_in, bytes_out = bytes_of(session)
        return {
            "client_id": session.client_id,
            "user": session.owner.user if session.owner is not None else None,
            "mount_point": mount_point_of(session),
            "connected": link is not None,
            "address": link.transport.peer if link is not None else None,
            "listener": link.client.policy.index if link is not None else None,
            "protocol": PROTOCOLS.get(session.version, str(session.version)),
            "keep_alive_seconds": round(link.client.keep_alive) if link is not None else None,
            "since_seconds": round(self._clock.monotonic - link.client.connected_at, 1) if link is not None else None,
            "published": published,
            "delivered": delivered,
            "published_per_second": round(rates.published_rate, 1) if rates is not None else 0.0,
            "delivered_per_second": round(rates.delivered_rate, 1) if rates is not None else 0.0,
            "rate": round(rates.published_rate + rates.delivered_rate, 1) if rates is not None else 0.0,
            "bytes_in": bytes_in,
            "bytes_out": bytes_out,
            "bytes_in_per_second": round(rates.bytes_in_rate, 1) if rates is not None else 0.0,
            "bytes_out_per_second": round(rates.bytes_out_rate, 1) if rates is not None else 0.0,
            "in_flight": session.window.in_flight if session.window is not None else 0,
            "in_flight_max": session.window.limit if session.window is not None else None,
            "held_by": held_by(session, self._clock.monotonic),
            "behind_records": records,
            "behind_seconds": None if seconds is None else round(seconds, 1),
            "undelivered": self._drop_counters.of_client(session.key),
            "subscriptions": sorted(session.asked),
        }


def mount_point_of(session: Session) -> str | None:
    if session.owner is None:
        return None
    return session.owner.mount if session.owner.mount not in (GATEWAY, BROKER) else ""


def held_by(session: Session, now: float) -> str:
    """Why a session is not sent more now: `ClientRow.held_by`."""
    link = session.link
    if link is None:
        return "connection"
    if not isinstance(link, Connected):
        return ""
    left = [balance for bucket in link.buckets for balance in bucket.balance(now) if balance is not None]
    if min(left, default=0.0) < 0.0:
        return "quota"
    flow = link.flow
    if link.transport.room <= 0 or getattr(link.transport, "blocked", False):
        return "socket"
    if flow.window_full:
        return "acknowledgements"
    return "replay_quota" if flow.meter is not None and flow.meter.is_spent else ""


class TopicRates:
    """How fast the records of each topic grow, by counts that are remembered each minute. Cost: 8 bytes a topic."""

    def __init__(self, store: Store, clock: Clock, timers: Timers) -> None:
        self._partitions, self._clock, self._timers = store.own, clock, timers
        self._at = clock.monotonic
        self._before: list[array[int]] = [array("Q") for _ in store.own]
        self._now: tuple[float, list[array[int]]] = (self._at, self._before)

    def begin(self) -> None:
        """Remember the counts, now and each minute."""
        self._timers.later(60.0, self.begin)
        self._at, self._before = self._now
        self._now = (self._clock.monotonic, [array("Q", p.next_offsets) for p in self._partitions])

    def rate_of(self, number: int, topic_id: int, records: int) -> float:
        """Records a second in the last one to two minutes."""
        before = self._before[number]
        seconds = self._clock.monotonic - self._at
        return (records - (before[topic_id] if topic_id < len(before) else 0)) / seconds if seconds > 0 else 0.0


class TopicListing:
    def __init__(self, store: Store, rates: TopicRates, timers: Timers) -> None:
        self._partitions, self._rates, self._timers = store.own, rates, timers

    def list(self, question: Answer, may_read: MayRead, done: Done) -> None:
        """question: "topic" (a filter), "sort" and "limit", each may be absent; may_read: others are not counted"""
        wanted = question.get("topic")

        def rows() -> Iterator[Answer | None]:
            for number, partition in enumerate(self._partitions):
                for topic_id in range(len(partition.topic_names)):
                    name = partition.topic_names[topic_id].decode(errors="replace")
                    is_wanted = bool(name) and (wanted is None or matches(wanted, name))
                    if not is_wanted or not may_read(name):
                        yield None
                        continue
                    records = partition.next_offsets[topic_id]
                    yield {
                        "topic": name,
                        "stream": partition.stream,
                        "partition": partition.number,
                        "records": records,
                        "records_per_second": round(self._rates.rate_of(number, topic_id, records), 2),
                    }

        Listing(self._timers, rows(), question, TOPIC_SORTS, "topics", TOPICS_A_TURN, done).go_on()
