"""What was not delivered, counted by reason, client and topic: nothing is dropped in silence.

Memory is bounded and sums stay exact. Past `topics_max` topics of one client its further ones are counted under "#".
Past `rows_max` rows or `bytes_max` bytes of names, what the client had that was counted longest ago goes into the sum
of the others: client "", topic "#". Knows no log, no session."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Literal, get_args

Why = Literal["expired", "over_limit", "retention", "backlog_records_max", "damaged", "no_permission"]
REASONS: tuple[Why, ...] = get_args(Why)
OTHER_CLIENTS = ""  # no client has it: who comes with an empty id is given one
OTHER_TOPICS = "#"  # no message has it


@dataclass(frozen=True, slots=True)
class Undelivered:
    """One line of the ledger."""

    why: Why
    client_id: str
    topic: str
    records: int


class DropCounters:
    def __init__(self, rows_max: int = 100_000, topics_max: int = 10_000, bytes_max: int = 16 << 20) -> None:
        self._clients: OrderedDict[str, Counter[tuple[Why, str]]] = OrderedDict()  # counted last is last
        self._sums: Counter[Why] = Counter()
        self._rows_max, self._topics_max, self._bytes_max = rows_max, topics_max, bytes_max
        self._count = self._bytes = 0  # of the rows that have names
        self.records = 0  # of all lines

    def count(self, why: Why, client_id: str, topic: str, records: int = 1) -> None:
        """Add to a line. Cost: constant, but for what must make room"""
        self.records += records
        self._sums[why] += records
        lines = self._clients.get(client_id)
        if lines is None:
            lines = self._clients[client_id] = Counter()
            self._bytes += len(client_id)
        self._clients.move_to_end(client_id)
        if (why, topic) not in lines:
            if len(lines) >= self._topics_max:
                topic = OTHER_TOPICS
            if (why, topic) not in lines:
                self._count += 1
                self._bytes += len(topic)
        lines[why, topic] += records
        while self._count > self._rows_max or self._bytes > self._bytes_max:
            if not self._fold():
                break

    def _fold(self) -> bool:
        """Count the client that was counted longest ago among the others; False if there is none but those."""
        others = self._clients.setdefault(OTHER_CLIENTS, Counter())
        oldest = next((client for client in self._clients if client != OTHER_CLIENTS), None)
        if oldest is None:
            return False
        lines = self._clients.pop(oldest)
        self._count -= len(lines)
        self._bytes -= len(oldest) + sum(len(topic) for _, topic in lines)
        for (why, _), records in lines.items():
            self._count += (why, OTHER_TOPICS) not in others
            others[why, OTHER_TOPICS] += records
        return True

    def total(self, why: Why | None = None) -> int:
        return self.records if why is None else self._sums[why]

    def of_client(self, client_id: str) -> int:
        """Records of all lines of one client. Cost: its lines"""
        return sum(self._clients.get(client_id, {}).values())

    def rows(self, client_id: str | None = None, topic: str | None = None) -> list[Undelivered]:
        """Every line, or those of one client or topic; most records first."""
        clients = self._clients if client_id is None else [client_id]
        found = [
            Undelivered(why, client, name, records)
            for client in clients
            for (why, name), records in self._clients.get(client, {}).items()
            if topic in (None, name)
        ]
        return sorted(found, key=lambda row: -row.records)
