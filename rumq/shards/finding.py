"""Where a replay begins, and what was retained there: searches on the reader thread, answers as commands.

Knows no socket, no client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from router.commands import StartFound
from router.effects import FindStart
from router.retained import Retained, RetainedView
from rumq.shards.worker import Worker

CHUNK_RETAIN = 8
Found = tuple[dict[int, int], list[Retained]]


class Finding:
    def __init__(
        self,
        store: Any,
        retained: RetainedView,
        worker: Worker,
        commands: list[Any],
        event: Callable[..., None],
    ) -> None:
        self._store, self._retained, self._worker = store, retained, worker
        self._commands, self._event = commands, event

    def find(self, effect: FindStart) -> None:
        """Search, and answer with `StartFound`; at the end of the log if the disk fails, which is told."""
        partitions = self._store.partitions
        if effect.topic is not None:
            where = self._store.place(effect.topic.decode())
            lookups = {where: partitions[where].find_offset(effect.topic, effect.offset)}
        else:
            lookups = {p.index: p.find_time(effect.ts_us) for p in partitions}
        as_of = AsOf(partitions, self._retained, effect.retained) if effect.retained is not None else None

        def find() -> Found:
            lsns = {index: lookup.run() for index, lookup in lookups.items()}
            return lsns, as_of.run(lsns) if as_of is not None else []

        def done(found: Found | None, fault: BaseException | None) -> None:
            if fault is not None:
                self._event("log.failed", why=str(fault))
            lsns, retained = found or ({}, [])
            self._commands.append(StartFound(effect.reader, lsns, retained))

        self._worker.submit(find, done)


class AsOf:
    """What was retained when the log stood somewhere: the retained messages before that, in order.

    What retention took from the log since counts as far as it is retained still: it was at any time in between."""

    def __init__(self, partitions: list[Any], now: RetainedView, topic_filter: str) -> None:
        self._filter = topic_filter
        self._searches = [(p.index, p.flagged(CHUNK_RETAIN), p.topic_names) for p in partitions]
        first_lsns = [p.first_lsn for p in partitions]
        self._older = (
            [m for m in now.find(topic_filter) if m.lsn < first_lsns[m.partition]] if any(first_lsns) else []
        )

    def run(self, lsns: dict[int, int]) -> list[Retained]:
        """raises: OSError"""
        view = RetainedView()
        for message in self._older:
            if message.lsn < lsns[message.partition]:
                view.put(message)
        for index, search, names in self._searches:
            for chunk in search.run(lsns[index]):
                view.take(index, chunk, names)
        return view.find(self._filter)
