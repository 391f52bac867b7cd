"""What was not delivered, counted by reason, client and topic: nothing is dropped in silence.

Bounded: past `rows_max` pairs of client and topic, further topics of a client are counted under "#"."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

Why = Literal["expired", "over_limit", "gone", "damaged", "no_permission"]


@dataclass(frozen=True, slots=True)
class Undelivered:
    """One line of the ledger."""

    why: Why
    client_id: str
    topic: str
    records: int


class Ledger:
    def __init__(self, rows_max: int = 100_000) -> None:
        self._rows: Counter[tuple[str, str, str]] = Counter()
        self._rows_max = rows_max
        self.records = 0  # of all lines

    def count(self, why: Why, client_id: str, topic: str, records: int = 1) -> None:
        key = (why, client_id, topic)
        if key not in self._rows and len(self._rows) >= self._rows_max:
            key = (why, client_id, "#")
        self._rows[key] += records
        self.records += records

    def total(self, why: Why | None = None) -> int:
        return sum(n for (reason, _, _), n in self._rows.items() if why is None or reason == why)

    def rows(self, client_id: str | None = None, topic: str | None = None) -> list[Undelivered]:
        """Every line, or those of one client or topic; most records first."""
        return [
            Undelivered(why, client, name, records)  # type: ignore[arg-type]
            for (why, client, name), records in self._rows.most_common()
            if client_id in (None, client) and topic in (None, name)
        ]
