"""Counters of undelivered messages by reason, client and topic.

Memory is bounded and sums stay exact. Above `topics_max` topics of a client, further ones are counted under "#". Above
`rows_max` rows or `bytes_max` bytes of names, the rows of the least recently counted client are merged into client "",
topic "#"."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Literal, get_args

Why = Literal["expired", "over_limit", "retention", "backlog_records_max", "damaged", "no_permission"]
REASONS: tuple[Why, ...] = get_args(Why)
OTHER_CLIENTS = ""  # no client has it: the broker assigns an id instead of an empty one
OTHER_TOPICS = "#"  # no topic name


@dataclass(frozen=True, slots=True)
class Undelivered:
    """One row of the counters."""

    why: Why
    client_id: str
    topic: str
    records: int


class DropCounters:
    def __init__(self, rows_max: int = 100_000, topics_max: int = 10_000, bytes_max: int = 16 << 20) -> None:
        self._clients: OrderedDict[str, Counter[tuple[Why, str]]] = OrderedDict()  # least recently counted first
        self._sums: Counter[Why] = Counter()
        self._rows_max, self._topics_max, self._bytes_max = rows_max, topics_max, bytes_max
        self._count = self._bytes = 0  # of the rows with names
        self.records = 0  # of all rows

    def count(self, why: Why, client_id: str, topic: str, records: int = 1) -> None:
        """Add to a row. Cost: constant, except when rows are merged"""
        self.records += records
        self._sums[why] += records
        counts = self._clients.get(client_id)
        if counts is None:
            counts = self._clients[client_id] = Counter()
            self._bytes += len(client_id)
        self._clients.move_to_end(client_id)
        if (why, topic) not in counts:
            if len(counts) >= self._topics_max:
                topic = OTHER_TOPICS
            if (why, topic) not in counts:
                self._count += 1
                self._bytes += len(topic)
        counts[why, topic] += records
        while self._count > self._rows_max or self._bytes > self._bytes_max:
            if not self._merge_oldest():
                break

    def _merge_oldest(self) -> bool:
        """Merge the least recently counted client into the others; False if there is none."""
        others = self._clients.setdefault(OTHER_CLIENTS, Counter())
        oldest = next((client for client in self._clients if client != OTHER_CLIENTS), None)
        if oldest is None:
            return False
        counts = self._clients.pop(oldest)
        self._count -= len(counts)
        self._bytes -= len(oldest) + sum(len(topic) for _, topic in counts)
        for (why, _), records in counts.items():
            self._count += (why, OTHER_TOPICS) not in others
            others[why, OTHER_TOPICS] += records
        return True

    def total(self, why: Why | None = None) -> int:
        return self.records if why is None else self._sums[why]

    def of_client(self, client_id: str) -> int:
        """Records of all rows of one client. Cost: its rows"""
        return sum(self._clients.get(client_id, {}).values())

    def rows(self, client_id: str | None = None, topic: str | None = None) -> list[Undelivered]:
        """All rows, or those of one client or topic; most records first."""
        clients = self._clients if client_id is None else [client_id]
        found = [
            Undelivered(why, client, name, records)
            for client in clients
            for (why, name), records in self._clients.get(client, {}).items()
            if topic in (None, name)
        ]
        return sorted(found, key=lambda row: -row.records)
