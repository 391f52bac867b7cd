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


def lookups_for(
    store: Any, retained: RetainedView, ts_us: int | None, topic: bytes | None, offset: int | None, as_of: str | None
) -> Callable[[], Found]:  # fmt: skip
    """A search of our own partitions, for another thread: (partition -> lsn, what a filter had retained there)."""
    if topic is not None:
        where = store.partitions[store.place(topic.decode())]
        lookups = {where.index: where.find_offset(topic, offset)} if not where.is_mirrored else {}
    elif ts_us is not None:
        lookups = {p.index: p.find_time(ts_us) for p in store.own}
    else:
        lookups = {}
    view = AsOf(store.own, retained, as_of) if as_of is not None else None

    def find() -> Found:
        lsns = {index: lookup.run() for index, lookup in lookups.items()}
        return lsns, view.run(lsns) if view is not None else []

    return find


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

    def find(
        self, effect: FindStart, done: Callable[[dict[int, int], list[Retained]], None] | None = None
    ) -> None:
        """Search, and answer with `StartFound` or `done`: at the end of the log if the disk fails, which is told."""
        find = lookups_for(
            self._store, self._retained, effect.ts_us, effect.topic, effect.offset, effect.retained
        )

        def found(what: Found | None, fault: BaseException | None) -> None:
            if fault is not None:
                self._event("log.failed", why=str(fault))
            lsns, retained = what or ({}, [])
            if done is not None:
                done(lsns, retained)
            else:
                self._commands.append(StartFound(effect.reader, lsns, retained))

        self._worker.submit(find, found)


class AsOf:
    """What was retained when the log stood somewhere: the retained messages before that, in order.

    What retention took from the log since counts as far as it is retained still: it was at any time in between."""

    def __init__(self, partitions: list[Any], now: RetainedView, topic_filter: str) -> None:
        self._filter = topic_filter
        self._searches = [(p.index, p.flagged(CHUNK_RETAIN), p.topic_names) for p in partitions]
        first = {p.index: p.first_lsn for p in partitions}
        self._older = (
            [m for m in now.find(topic_filter) if m.lsn < first.get(m.partition, 0)]
            if any(first.values())
            else []
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
