"""What was not delivered, and of one client also what is still to come, which is counted in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from router.readers.reader import Reader
from rumq.admin import requests as q
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.registry import Registry
from rumq.session.state.session_owner import client_id_of
from rumq.shards.admin.listings.listings import Done

Pending = Callable[[Iterable[Reader], Callable[[Counter[str]], None]], None]


class LedgerQuery:
    def __init__(self, registry: Registry, drop_counters: DropCounters, pending: Pending) -> None:
        """pending: counts what readers are still to get, by topic, once all losses up to now are counted"""
        self._registry, self._drop_counters, self._pending = registry, drop_counters, pending

    def list(self, asked: q.Ledger, done: Done) -> None:
        client, topic = asked.client, asked.topic
        readers = [
            reader
            for session in self._registry.sessions.values()
            if client is not None and session.client_id == client
            for reader in session.subscriber.readers()
        ]

        def found(pending: Counter[str]) -> None:
            done(
                {
                    "undelivered": [
                        {"reason": r.why, "client_id": name, "topic": r.topic, "records": r.records}
                        for r in self._drop_counters.rows(None, topic)
                        if client in (None, name := client_id_of(r.client_id))
                    ],
                    "pending": [
                        {"client_id": client, "topic": name, "records": records}
                        for name, records in pending.most_common()
                        if topic in (None, name)
                    ],
                }
            )

        self._pending(readers, found)
