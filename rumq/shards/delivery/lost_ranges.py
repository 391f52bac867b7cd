"""Ranges of the log that readers lost, counted by topic: of each range the records that their filters match.

The ranges are read from the log in small pieces, one range at a time. Records that retention is about to remove are
counted before the removal. Knows no socket; the router reports losses (`router.effects.RecordsLost`)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable

from commitlog import NotInMemory, OffsetTrimmed
from commitlog.chunk import Chunk, Gap
from router.effects import RecordsLost
from router.kernels import routes as kernel
from router.kernels.filter_index import FilterIndex
from router.matching.feed import Feed
from router.readers.reader import Group, Reader
from router.readers.subscription import Subscription
from rumq.loop.ports import ChunkReader, EventSink, Timers
from rumq.session.state.drop_counters import OTHER_TOPICS, DropCounters
from rumq.session.state.session import Session
from rumq.session.state.session_owner import client_id_of

PIECE_BYTES = 1 << 20
TOPICS_MAX = 1 << 40
CHECKS_A_TURN = 1000  # topics that are matched with filters of readers that lost records
MISSED_MAX = 32  # losses that a client is told of when it returns: the newest


class ReaderSelection:
    """What a reader asked for when it lost something: a group may change, this does not."""

    def __init__(self, group: Group) -> None:
        self._filters = FilterIndex()
        self._subscriptions: dict[str, list[Subscription]] = {}
        for subscription in group.subscriptions:
            self._filters.add(subscription.topic_filter)
            self._subscriptions.setdefault(subscription.topic_filter, []).append(subscription)

    def verdict(self, topic: str) -> bool | None:
        """Whether it may receive a topic that it asked for; None: it did not ask."""
        found = self._filters.match(topic)
        if not found:
            return None
        return any(s.covers(topic) for f in found for s in self._subscriptions[f])


class Loser:
    """Who lost what is in a count from `first` on. told: by topic (wanted, not permitted), records of unknown topics"""

    __slots__ = ("asked", "first", "told")

    def __init__(
        self, first: int, asked: ReaderSelection, told: Callable[[Counter[str], Counter[str], int], None]
    ) -> None:
        self.first, self.asked, self.told = first, asked, told


class ReadBudget:
    """How much of the log a question may have read: what is beyond is of unknown topics."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_left = bytes_max


class Count:
    """A range of a partition up to `stop`, for all who lost something of it. budget: None: all of it is read"""

    def __init__(self, index: int, stop: int, why: str, budget: ReadBudget | None = None) -> None:
        self.index, self.stop, self.why, self.budget = index, stop, why, budget
        self.losers: list[Loser] = []
        self.then: list[Callable[[], None]] = []
        self.has_begun = False
        self.firsts: list[int] = []
        self.found: list[Counter[int]] = []  # topic id -> records, from each of `firsts` up to the next
        self.unknown: list[int] = []
        self.lsn = 0

    def begin(self) -> None:
        self.has_begun = True
        self.firsts = sorted({loser.first for loser in self.losers})
        self.found = [Counter() for _ in self.firsts]
        self.unknown = [0] * len(self.firsts)
        self.lsn = self.firsts[0] if self.firsts else self.stop

    def take(self, chunk: Chunk | Gap) -> None:
        """Count a chunk, or a gap, and go on behind it."""
        if self.budget is not None and isinstance(chunk, Chunk):
            if self.budget.bytes_left <= 0:
                self.skip(self.stop)
                return
            self.budget.bytes_left -= len(chunk.rows) + len(chunk.frames)
        stop = min(chunk.next_lsn, self.stop)
        if chunk.base_lsn > self.lsn:
            self.skip(min(chunk.base_lsn, self.stop))
        if not isinstance(chunk, Chunk):
            self.skip(stop)
            return
        while self.lsn < stop:
            at = bisect_right(self.firsts, self.lsn) - 1
            end = min([stop, *self.firsts[at + 1 : at + 2]])
            found, _ = kernel.tally(
                chunk.rows, len(chunk.frames), self.lsn - chunk.base_lsn, end - chunk.base_lsn, None, None, TOPICS_MAX
            )
            self.found[at].update(found)
            self.lsn = end

    def skip(self, stop: int) -> None:
        """Nobody can tell the topics of what is below `stop`."""
        while self.lsn < stop:
            at = bisect_right(self.firsts, self.lsn) - 1
            end = min([stop, *self.firsts[at + 1 : at + 2]])
            self.unknown[at] += end - self.lsn
            self.lsn = end

    def tell(self, names: list[bytes]) -> Generator[None]:
        """Tell each loser; yields now and then. Cost: losers times topics"""
        total: Counter[str] = Counter()
        unknown = checks = 0
        losers: dict[int, list[Loser]] = {}
        for loser in self.losers:
            losers.setdefault(loser.first, []).append(loser)
        for at in reversed(range(len(self.firsts))):
            unknown += self.unknown[at]
            for topic_id, records in self.found[at].items():
                total[names[topic_id].decode()] += records
            for loser in losers[self.firsts[at]]:
                wanted: Counter[str] = Counter()
                denied: Counter[str] = Counter()
                for topic, records in total.items():
                    checks += 1
                    if checks % CHECKS_A_TURN == 0:
                        yield
                    verdict = loser.asked.verdict(topic)
                    if verdict is not None:
                        (wanted if verdict else denied)[topic] = records
                loser.told(wanted, denied, unknown)


class LostRanges:
    def __init__(
        self, timers: Timers, events: EventSink, feeds: list[Feed], reader: ChunkReader,
        sessions: dict[str, Session], drop_counters: DropCounters,
    ) -> None:  # fmt: skip
        self._timers, self._events, self._feeds, self._reader = timers, events, feeds, reader
        self._sessions, self._drop_counters = sessions, drop_counters
        self._waiting: deque[Count] = deque()
        self._is_busy = False
        # readers whose losses wait to be counted, while their group stays
        self._asked: dict[Group, ReaderSelection] = {}
        self.uncounted = 0  # losses that have not been counted yet

    # What was lost

    def lost(self, effect: RecordsLost) -> None:
        """A reader has lost a range. Another shard counts what its own readers lose; status messages, which are in no
        file, are replaced by newer ones."""
        if self._feeds[effect.partition].partition.is_volatile or effect.reader.group.wants.is_shard:
            return
        self._count(effect.partition, effect.next_lsn, effect.why).losers.append(self._loser(effect))
        self._begin()

    def _loser(self, effect: RecordsLost) -> Loser:
        self.uncounted += 1
        key, why = effect.reader.key, effect.why

        def add_losses(wanted: Counter[str], denied: Counter[str], unknown: int) -> None:
            self.uncounted -= 1
            for reason, counts in ((why, wanted), ("no_permission", denied)):
                for topic, records in counts.items():
                    self._drop_counters.count(reason, key, topic, records)  # type: ignore[arg-type]
            if unknown:
                self._drop_counters.count(why, key, OTHER_TOPICS, unknown)  # type: ignore[arg-type]
            if wanted or unknown:
                self._tell(effect, sum(wanted.values()) + unknown)

        return Loser(effect.lsn, self._what(effect.reader.group), add_losses)

    def _what(self, group: Group) -> ReaderSelection:
        if group.private:
            return ReaderSelection(group)
        if group not in self._asked:
            self._asked[group] = ReaderSelection(group)
        return self._asked[group]

    def _tell(self, effect: RecordsLost, records: int) -> None:
        partition = self._feeds[effect.partition].partition
        gap = {
            "stream": partition.stream, "generation": partition.generation, "partition": partition.number,
            "first_lsn": effect.lsn, "next_lsn": effect.next_lsn, "records": records, "why": effect.why,
        }  # fmt: skip
        session = self._sessions.get(effect.reader.key)
        if session is None or session.link is not None:
            self._events.tell("log.gap", client_id=client_id_of(effect.reader.key), **gap)
        else:
            session.missed = (*session.missed[1 - MISSED_MAX :], gap)

    # What is still to come

    def pending(
        self, readers: Iterable[Reader], done: Callable[[Counter[str]], None], budget: ReadBudget | None = None
    ) -> None:
        """What some readers have not come to yet, by topic ("#" is what cannot be told, or is beyond the budget), once
        all that was lost before is counted."""
        found: Counter[str] = Counter()
        left = 1

        def add_losses(wanted: Counter[str], _: Counter[str], unknown: int) -> None:
            found.update(wanted)
            found[OTHER_TOPICS] += unknown

        def one_less() -> None:
            nonlocal left
            left -= 1
            if not left:
                done(+found)

        for reader in readers:
            for feed in self._feeds:
                index, end = feed.index, feed.mark(reader.group.wants.committed_only)
                if feed.partition.is_volatile or reader.start is not None:
                    continue
                if reader.is_live(index) or reader.cursors[index] >= end:
                    continue
                left += 1
                count = self._count(index, end, "pending", budget)
                count.losers.append(Loser(reader.cursors[index], self._what(reader.group), add_losses))
                count.then.append(one_less)
        if self._waiting:
            left += 1
            self._waiting[-1].then.append(one_less)
        self._begin()
        one_less()

    def count_removed(self, index: int, next_lsn: int, then: Callable[[], None]) -> None:
        """Call back once what readers have lost of a partition below `next_lsn` is counted."""
        self._count(index, next_lsn, "retention").then.append(then)
        self._begin()

    # Counting

    def _count(self, index: int, stop: int, why: str, budget: ReadBudget | None = None) -> Count:
        """The count that has not begun for this range's end, or a new one."""
        last = self._waiting[-1] if self._waiting else None
        wanted = (index, stop, why, budget)
        if last is None or last.has_begun or (last.index, last.stop, last.why, last.budget) != wanted:
            last = Count(index, stop, why, budget)
            self._waiting.append(last)
        return last

    def _begin(self) -> None:
        if self._waiting and not self._is_busy:
            # In the next turn: until then whoever loses the same is counted with it.
            self._is_busy = True
            self._timers.next_turn(self._start)

    def _start(self) -> None:
        self._waiting[0].begin()
        self._go_on()

    def _go_on(self) -> None:
        count = self._waiting[0]
        if count.lsn >= count.stop:
            partition = self._feeds[count.index].partition
            self._tell_all(count, count.tell(partition.topic_names))
            return
        partition = self._feeds[count.index].partition
        try:
            chunks = partition.read(count.lsn, PIECE_BYTES)
        except (NotInMemory, OffsetTrimmed):
            self._reader.read(count.index, count.lsn, self._read)
            return
        self._timers.next_turn(lambda: self._read(chunks, None))

    def _read(self, chunks: list[Chunk | Gap] | None, _: BaseException | None) -> None:
        count = self._waiting[0]
        before = count.lsn
        for chunk in chunks or ():
            if chunk.next_lsn > count.lsn < count.stop:
                count.take(chunk)
        if count.lsn == before:
            count.skip(count.stop)  # it cannot be read, or is not there any more
        self._go_on()

    def _tell_all(self, count: Count, telling: Generator[None]) -> None:
        for _ in telling:
            self._timers.next_turn(lambda: self._tell_all(count, telling))
            return
        self._waiting.popleft()
        if not self._waiting:
            self._asked.clear()
        self._is_busy = False
        for call in count.then:
            call()
        self._begin()
