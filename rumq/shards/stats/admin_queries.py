"""Questions that the operator asks a running broker, about its clients, its log, and what was not delivered.

Answers are plain data for JSON, made on the loop's thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from router.reader import Reader as LogReader
from rumq.admin.operations import OPERATIONS, READER, UNKNOWN, Reader, request_of
from rumq.auth.identity import Identity
from rumq.mqtt.reasons import Reason
from rumq.session.connection.listener_policy import ListenerPolicy
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.registry import Registry
from rumq.session.state.session_owner import client_id_of
from rumq.shards.retention.disk_space import DiskStatistics
from rumq.shards.stats.admin_listings import Answer, ClientListing, Done, MayRead, TopicListing, every_topic
from rumq.shards.stats.counters import CountedShard
from rumq.shards.stats.partition_row import partition_row
from rumq.shards.stats.survey import Survey
from rumq.shards.turn.ports import Clock, EventSink

QUESTIONS = tuple(OPERATIONS)
Later = Callable[[Done], None]
Pending = Callable[[Iterable[LogReader], Callable[[Counter[str]], None]], None]


class Unknown(ValueError):
    """A question that nobody here can answer."""

    def __str__(self) -> str:
        return f"cannot answer {self.args[0]!r}; ask one of {', '.join(QUESTIONS)}"


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


class TopicReaders:
    """Of which topics an answer may tell: those that the reader it is for may read.

    The gateway names the reader; the rules are those of the gateway's clients, here as there. A question without a
    reader is the operator's own, who can read the data directory."""

    def __init__(self, policies: Collection[ListenerPolicy]) -> None:
        """policies: of every listener, the gateway's among them"""
        self._policies = policies

    def may_read(self, question: Answer) -> MayRead:
        """raises: ValueError for a reader whose rules are not known here"""
        if READER not in question:
            return every_topic
        reader = msgspec.convert(question[READER], Reader)
        policy = next((each for each in self._policies if each.is_gateway), None)
        if policy is None:
            raise ValueError(
                "this broker has no gateway, so no rules for its readers: set gateway.port here too"
            )
        permit = policy.rules.permit(Identity(reader.user), "") if policy.rules is not None else None
        return permit.past.may_receive if permit is not None else every_topic


@dataclass(frozen=True, slots=True)
class AdminQueries:
    """pending: counts what readers are still to get, by topic, once all losses up to now are counted

    readers: of which topics an answer may tell
    more: answers of further operations of `rumq.admin`, by name; of those whose table entry says `in_shards` with what
    the reader may read as a second argument"""

    status: StatusQuery
    clients: ClientListing
    topics: TopicListing
    registry: Registry
    drop_counters: DropCounters
    pending: Pending
    events: EventSink
    survey: Survey
    readers: TopicReaders
    more: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def answer(self, question: Answer) -> Answer | Later:
        """question: {"ask": one of QUESTIONS, ...the fields of its request}

        returns: the answer, or what will call back with it. raises: ValueError"""
        ask = question.get("ask")
        if not isinstance(ask, str) or ask not in OPERATIONS:
            raise Unknown(ask)
        operation, request = request_of(question)
        told = (self.readers.may_read(question),) if operation.tells.in_shards else ()
        if ask in self.more:
            found: Answer | Later = self.more[ask](request, *told)
            return found
        asked = msgspec.to_builtins(request)
        if ask == "status":
            return self.survey.ask(lambda connected: self.status.answer(connected.total()))
        if ask == "clients":
            return partial(self.clients.list, asked)
        if ask == "topics":
            return partial(self.topics.list, asked, *told)
        if ask == "ledger":
            return partial(self._undelivered, asked["client"], asked["topic"])
        return self._end(asked["client"], drops=ask == "drop")

    def _undelivered(self, client: str | None, topic: str | None, done: Done) -> None:
        """What was not delivered; of one client also what is still to come, which the log is asked for."""
        readers = [
            reader
            for session in self.registry.sessions.values()
            if client is not None and session.client_id == client
            for reader in session.subscriber.readers()
        ]

        def found(pending: Counter[str]) -> None:
            done(
                {
                    "undelivered": [
                        {"reason": r.why, "client_id": name, "topic": r.topic, "records": r.records}
                        for r in self.drop_counters.rows(None, topic)
                        if client in (None, name := client_id_of(r.client_id))
                    ],
                    "pending": [
                        {"client_id": client, "topic": name, "records": records}
                        for name, records in pending.most_common()
                        if topic in (None, name)
                    ],
                }
            )

        self.pending(readers, found)

    def _end(self, client: str, *, drops: bool) -> Answer:
        """Disconnect a client (0x98), of whatever owner; drops: and end its session. Returns how many there were."""
        found = [s for s in self.registry.sessions.values() if s.client_id == client]
        disconnected = 0
        for session in found:
            if session.link is not None:
                disconnected += 1
                session.link.dismiss(Reason.ADMINISTRATIVE_ACTION, "the operator ended this connection")
            if drops:
                self.registry.end(session)
        if found:
            self.events.tell(
                "session.dropped" if drops else "client.dismissed", client_id=client, sessions=len(found)
            )
        answer: Answer = {"disconnected": disconnected, "dropped": len(found) if drops else 0}
        return answer if found else {**answer, UNKNOWN: True}
