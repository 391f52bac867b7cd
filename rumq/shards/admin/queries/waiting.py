"""How many messages wait for one session: records that its readers have not come to, and that its filters match.

Counted from the log, a bounded part of it; of the rest only the number of records is known. What waits for a shared
group is the group's. Whether a message has expired is found out when it is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from router.readers.reader import Reader
from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.session.state.drop_counters import OTHER_TOPICS
from rumq.session.state.registry import Registry
from rumq.shards.admin.listings.listings import Done
from rumq.shards.admin.queries.client_detail import first_session_of
from rumq.shards.delivery.lost_ranges import ReadBudget

BYTES_MAX = 32 << 20  # of the log that one question may read
TOPICS_MAX = 20  # topics in the answer: those with most records
BoundedPending = Callable[[Iterable[Reader], Callable[[Counter[str]], None], ReadBudget | None], None]


class WaitingQuery:
    def __init__(self, registry: Registry, pending: BoundedPending) -> None:
        """pending: as `LostRanges.pending`"""
        self._registry, self._pending = registry, pending

    def count(self, asked: q.OneClient, done: Done) -> None:
        session = first_session_of(self._registry, asked.client)
        if session is None:
            done({"found": False})
            return
        readers = list(session.subscriber.readers())
        self._pending(readers, partial(self._counted, asked.client, done), ReadBudget(BYTES_MAX))

    def _counted(self, client_id: str, done: Done, found: Counter[str]) -> None:
        uncounted = found.pop(OTHER_TOPICS, 0)
        messages = found.total()
        rows = [
            r.PendingRow(client_id=client_id, topic=topic, records=records)
            for topic, records in found.most_common(TOPICS_MAX)
        ]
        done({"found": True, "messages": messages, "at_most": messages + uncounted, "topics": rows})
