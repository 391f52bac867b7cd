"""The start of a replay: its lsn in each partition, and the retained messages of that time.

Searches run on a thread, one at a time, with clients in turn. A client's filters with equal times share a scan.
A search that is no longer wanted is dropped. Knows no socket, no client."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from commitlog.chunk import FLAG_RETAIN
from commitlog.log.partition import Partition
from commitlog.log.store import Store
from commitlog.read.cold_reads import OffsetSearch, TimeSearch
from router.commands import StartFound
from router.effects import FindStart
from router.matching.retained import RetainedRecord, RetainedView
from rumq.loop.ports import CommandQueue, EventSink, ReadPool
from rumq.shards.bus.remote_partition import RemotePartition

HERE = -1  # no other shard: the partition is ours
SEARCHES = 1  # the lane of the reader's worker: reads for those who have begun do not wait for searches
Found = tuple[dict[int, int], list[RetainedRecord]]


def lookups_for(
    store: Store, retained: RetainedView, ts_us: int | None, topic: bytes | None, offset: int | None, as_of: str | None
) -> Callable[[], Found]:
    """A search of our own partitions, for another thread: (partition -> lsn, what a filter had retained there)."""
    filters = [as_of] if as_of is not None else []
    search = searches_for(store, retained, ts_us, topic, offset, filters, lambda: True)

    def find() -> Found:
        lsns, found = search()
        return lsns, found[0] if found else []

    return find


def searches_for(
    store: Store, retained: RetainedView, ts_us: int | None, topic: bytes | None, offset: int | None, as_of: list[str],
    is_wanted: Callable[[], bool],
) -> Callable[[], tuple[dict[int, int], list[list[RetainedRecord]]]]:  # fmt: skip
    """As `lookups_for`, of several filters in one scan: what each of them had retained."""
    lookups: Mapping[int, OffsetSearch | TimeSearch]
    if topic is not None and offset is not None:
        where = store.partitions[store.place(topic.decode())].index
        lookups = {p.index: p.find_offset(topic, offset) for p in store.own if p.index == where}
    elif ts_us is not None:
        lookups = {p.index: p.find_time(ts_us) for p in store.own}
    else:
        lookups = {}
    view = AsOf(store.own, retained, as_of, is_wanted) if as_of else None

    def find() -> tuple[dict[int, int], list[list[RetainedRecord]]]:
        lsns = {index: lookup.run() for index, lookup in lookups.items()}
        return lsns, view.run(lsns) if view is not None else []

    return find


Done = Callable[[dict[int, int], list[RetainedRecord]], None]


class RemoteStarts(Protocol):
    """Where a replay begins in partitions of other shards."""

    def find_start(self, effect: FindStart, local: Callable[[Done], None] | None, owner: int | None) -> None: ...


class ReplayStart:
    """searches: that have been started, so far"""

    def __init__(
        self, store: Store, retained: RetainedView, pool: ReadPool, commands: CommandQueue, events: EventSink,
        remote: RemoteStarts | None,
    ) -> None:  # fmt: skip
        """remote: None with one shard"""
        self._store, self._retained, self._pool = store, retained, pool
        self._commands, self._events, self._remote = commands, events, remote
        self._waiting: dict[str, deque[tuple[FindStart, Done | None]]] = {}  # searches that wait, by client
        self._is_running = False
        self.searches = 0

    def start(self, effect: FindStart) -> None:
        """Find where a replay begins, in every partition or in the one of its topic, wherever that is."""
        if self._remote is None:
            self.find(effect)
            return
        owner: int | None = None
        is_here = True
        if effect.topic is not None:
            where = self._store.partitions[self._store.place(effect.topic.decode())]
            owner = where.owner if isinstance(where, RemotePartition) else HERE
            is_here = owner == HERE
        self._remote.find_start(effect, partial(self.find, effect) if is_here else None, owner)

    def find(self, effect: FindStart, done: Done | None = None) -> None:
        """Search, and answer with `StartFound` or `done`: at the end of the log if the disk fails, which is told."""
        self._waiting.setdefault(effect.reader.key, deque()).append((effect, done))
        self._next()

    def _next(self) -> None:
        """Begin the search of the client whose turn it is."""
        while self._waiting and not self._is_running:
            key = next(iter(self._waiting))
            queue = self._waiting.pop(key)
            together = [queue.popleft()]
            effect = together[0][0]
            if effect.reader.closed:
                together = []
            elif effect.retained is not None:
                same = [one for one in queue if one[0].retained is not None and one[0].ts_us == effect.ts_us]
                queue = deque(one for one in queue if one not in same)
                together += [one for one in same if not one[0].reader.closed]
            if queue:
                self._waiting[key] = queue
            if together:
                self._begin(together)

    def _begin(self, together: list[tuple[FindStart, Done | None]]) -> None:
        effect = together[0][0]
        search = searches_for(
            self._store, self._retained, effect.ts_us, effect.topic, effect.offset,
            [each.retained for each, _ in together if each.retained is not None],
            lambda: any(not each.reader.closed for each, _ in together),
        )  # fmt: skip
        self._is_running = True
        self.searches += 1

        def found(what: tuple[dict[int, int], list[list[RetainedRecord]]] | None, fault: BaseException | None) -> None:
            self._is_running = False
            if fault is not None:
                self._events.tell("log.failed", why=str(fault))
            lsns, retained = what or ({}, [])
            for at, (each, done) in enumerate(together):
                messages = retained[at] if at < len(retained) else []
                if done is not None:
                    done(lsns, messages)
                elif not each.reader.closed:
                    self._commands.put(StartFound(each.reader, lsns, messages))
            self._next()

        self._pool.submit(search, found, SEARCHES)


class AsOf:
    """What was retained when the log stood somewhere: the retained messages before that, in order.

    What retention took from the log since counts as far as it is retained still: it was at any time in between."""

    def __init__(
        self,
        partitions: Sequence[Partition],
        now: RetainedView,
        topic_filters: list[str],
        is_wanted: Callable[[], bool],
    ) -> None:
        """is_wanted: asked between two chunks; what is not wanted any more is not looked for"""
        self._filters, self._is_wanted = topic_filters, is_wanted
        self._searches = [(p.index, p.flagged(FLAG_RETAIN), p.topic_names) for p in partitions]
        first = {p.index: p.first_lsn for p in partitions}
        self._older: list[RetainedRecord] = []
        if any(first.values()):
            for topic_filter in topic_filters:
                self._older += [m for m in now.find(topic_filter) if m.lsn < first.get(m.partition, 0)]

    def run(self, lsns: dict[int, int]) -> list[list[RetainedRecord]]:
        """Of each filter. raises: OSError"""
        view = RetainedView()
        for message in self._older:
            if message.lsn < lsns[message.partition]:
                view.put(message)
        for index, search, names in self._searches:
            for chunk in search.run(lsns[index]):
                if not self._is_wanted():
                    return []
                view.update(index, chunk, names)
        return [view.find(topic_filter) for topic_filter in self._filters]
