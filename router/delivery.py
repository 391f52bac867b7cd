"""Deliver chunks to readers: new ones to live readers, older ones to readers that catch up.

Delivery is an effect; what a sink does not accept comes back as a command of the next step."""
# compiled: hot

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Sequence

from commitlog import Gap
from commitlog.chunk import Chunk
from router.backlog import chunk_returned, lose, next_rows, wait_until_shown
from router.effects import (
    CatchUpPaused,
    Deliver,
    Effect,
    ReportShareDone,
    ReportShareReady,
    ReturnShare,
    Scatter,
    all_rows,
)
from router.kernels import routes as kernel
from router.matching.feed import Feed
from router.matching.routes import Places, Route
from router.matching.scatter import GROUPS_MIN, scatter
from router.readers.moved_groups import MovedGroups
from router.readers.reader import DENIED, Group, Reader
from router.readers.reader_turns import ReaderTurns
from router.readers.shared_group import Member, SharedGroup

NOTHING, EVERYTHING = array("I", [0]), array("I", [1])  # of one place: tables of `Deliver`
CATCH_UP_BYTES = 1 << 18  # delivered to one reader before others have their turn
CATCH_UP_CHUNKS = 32  # and in so many pieces at most: refused ones cost as much as accepted ones


class Delivery:
    """Appends to `effects` what readers are to get."""

    def __init__(self, feeds: list[Feed], backlog_records_max: int = 0) -> None:
        """backlog_records_max: a reader further behind loses the oldest; 0: it may be as far behind as the log goes"""
        self.feeds = feeds
        self._backlog_max = backlog_records_max
        self.effects: list[Effect] = []
        self._unconfirmed: dict[Member, None] = {}  # with ranges assigned in this step or the one before
        self.groups = MovedGroups()
        # What waits for topics to be matched, in turn order.
        self._deferred_feeds: dict[Feed, None] = {}
        self._deferred_readers: dict[Reader, None] = {}

    def begin_step(self) -> list[Effect]:
        """Start a step with an empty list of effects."""
        self.effects = []
        if self._unconfirmed:
            self._confirm()
        return self.effects

    def _confirm(self) -> None:
        """Ranges assigned two steps ago that were not returned are delivered."""
        for member in self._unconfirmed:
            share = member.share
            if member.before and not share.is_here:
                done = [(index, first, stop) for index, first, stop in member.before if first < stop]
                if done:
                    share.recent.extend(done)
                    self.effects.append(ReportShareDone(share.key, done))
        given, self._unconfirmed = self._unconfirmed, {}
        for member in given:
            if member.next_step():
                self._unconfirmed[member] = None
            else:
                member.share.forget_departed(member)

    @property
    def has_unconfirmed(self) -> bool:
        """Whether the home of a shared group, another shard, is still to be told that a range is delivered."""
        return any(not member.share.is_here for member in self._unconfirmed)

    def drain_effects(self) -> list[Effect]:
        """Effects that were produced outside a step."""
        effects, self.effects = self.effects, []
        return effects

    def deliver_chunk(self, feed: Feed, chunk: Chunk, committed_only: bool) -> None:
        """Deliver a new chunk to the live readers of every group that wants records of it. Where topics take more than
        a turn to match, the rest is deferred, with everything behind it."""
        if feed.deferred[committed_only]:
            feed.deferred[committed_only].append(chunk)
            return
        stop = self._deliver_live(feed, chunk, 0, committed_only)
        if stop < chunk.count:
            feed.defer(chunk, stop, committed_only)
            self._deferred_feeds[feed] = None

    def _deliver_live(self, feed: Feed, chunk: Chunk, first: int, committed_only: bool) -> int:
        """Deliver rows from `first` on; returns the row after the last one delivered."""
        routes = feed.routes
        if chunk.count == 1 and (route := routes.route_of_row(chunk.rows)) is not None:
            self._deliver_route(feed, chunk, route, 0, 1, committed_only)
            return 1
        cached = chunk.routes if first == 0 else None
        if cached is None or cached[0] != routes.epoch:
            numbers, places, stop = routes.routes_of(chunk.rows, first, chunk.count)
            if stop == first:
                return first
            if stop - first == chunk.count:
                chunk.routes = (routes.epoch, numbers, places)
        else:
            _, numbers, places = cached
            stop = chunk.count
        index = feed.index
        if len(numbers) == 1:
            self._deliver_route(feed, chunk, routes.route(numbers[0]), first, stop, committed_only)
            return stop
        groups: dict[Group, None] = {}
        for number in numbers:
            for group, _ in routes.route(number):
                groups[group] = None
        if len(groups) >= GROUPS_MIN:
            parts, others = scatter(routes, index, numbers, places, first, stop, committed_only)
            if parts:
                self.effects.append(Scatter(index, chunk, first, stop, parts))
            groups = dict.fromkeys(others)
        for group in groups:
            readers = group.live[index].listed()
            if readers and group.committed_only == committed_only:
                self._deliver_wanted(feed, chunk, group, first, stop, readers, numbers, places)
        return stop

    def _deliver_route(
        self, feed: Feed, chunk: Chunk, route: Route, first: int, stop: int, committed_only: bool
    ) -> None:
        """Deliver rows whose topics have the same route."""
        index = feed.index
        for group, form in route:
            live = group.live[index]
            if group.committed_only != committed_only or not (readers := live.listed()):
                continue
            if form == DENIED:
                table = NOTHING, None, EVERYTHING
                self.effects.append(Deliver(group, index, chunk, first, stop, readers, 0, table))
            else:
                self._deliver_all(feed, chunk, group, first, stop, readers, form)

    def has_deferred(self) -> bool:
        """Whether topics are still to be matched: `resume_deferred` in the next turn."""
        return bool(self._deferred_feeds or self._deferred_readers)

    def resume_deferred(self) -> None:
        """Resume what waits for topics to be matched, one after the other, each turn another one first."""
        feeds, self._deferred_feeds = self._deferred_feeds, {}
        for feed in feeds:
            for committed_only in (False, True):
                while feed.deferred[committed_only]:
                    chunk = feed.deferred[committed_only][0]
                    first = feed.mark(committed_only) - chunk.base_lsn
                    stop = self._deliver_live(feed, chunk, first, committed_only)
                    feed.delivered_up_to(stop, committed_only)
                    if stop < chunk.count:
                        break
            if feed.ahead:
                self.resume_ahead(feed)
            if feed.deferred[0] or feed.deferred[1]:
                self._deferred_feeds[feed] = None
        if len(self._deferred_feeds) > 1:
            feed = next(iter(self._deferred_feeds))
            self._deferred_feeds[feed] = self._deferred_feeds.pop(feed)
        waiting, self._deferred_readers = deque(self._deferred_readers), {}
        while waiting and not self.feeds[0].routes.is_spent:
            self._resume_any(waiting.popleft())
        self._deferred_readers = {**dict.fromkeys(waiting), **self._deferred_readers}

    def _resume_any(self, reader: Reader) -> None:
        if isinstance(reader.share, SharedGroup):
            self.run_share(reader.share)
        else:
            self.resume(reader)

    def resume(self, reader: Reader) -> None:
        """Resume a reader that is behind, if it is its turn."""
        turns = reader.turns
        if turns is None:
            self.catch_up(reader)
            return
        if reader in turns.active:
            self._take_turn(turns, reader)
        else:
            turns.enqueue(reader)
        self.fill_turns(turns)

    def fill_turns(self, turns: ReaderTurns[Reader]) -> None:
        """Start waiting readers while turns are free."""
        while (reader := turns.start_next()) is not None:
            self._take_turn(turns, reader)

    def resume_turns(self, turns: ReaderTurns[Reader]) -> None:
        """The client has capacity: active readers continue, those that had their share make room."""
        turns.rotate()
        for reader in list(turns.active):
            if reader in turns.active:
                self._take_turn(turns, reader)
        self.fill_turns(turns)

    def _take_turn(self, turns: ReaderTurns[Reader], reader: Reader) -> None:
        """Catch up one reader. It keeps its turn while it waits for a disk and, if others wait, after a delivery, which
        may be refused: then it is tried once more."""
        before = len(self.effects)
        self.catch_up(reader)
        given = [type(effect) for effect in self.effects[before:]]
        if Deliver in given and turns.has_waiting:
            if CatchUpPaused not in given:
                self.effects.append(CatchUpPaused(reader, if_taken=True))
        elif reader.start is not None or all(
            reader in reader.group.live[feed.index] or reader in feed.ahead for feed in self.feeds
        ):
            turns.finish(reader)

    def catch_up(self, reader: Reader) -> None:
        """Deliver a bounded piece to a reader that is behind, or make it live."""
        if reader.sink is None:
            return
        for feed in self.feeds:
            if reader not in reader.group.live[feed.index]:
                self._catch_up_in(reader, feed)

    def _catch_up_in(self, reader: Reader, feed: Feed) -> None:
        given = pieces = 0
        while given < CATCH_UP_BYTES and pieces < CATCH_UP_CHUNKS:
            found = next_rows(reader, feed, self._backlog_max, self.effects)
            if found is None:
                return
            chunk, first, stop = found
            numbers, places, stop = feed.routes.routes_of(chunk.rows, first, stop)
            if stop == first:
                self._deferred_readers[reader] = None
                return
            reader.cursors[feed.index] = chunk.base_lsn + stop
            self._deliver_wanted(feed, chunk, reader.group, first, stop, [reader], numbers, places)
            pieces += 1
            given += len(chunk.frames) * (stop - first) // chunk.count + 1
        self.effects.append(CatchUpPaused(reader))

    def skip(self, feed: Feed, readers: Iterable[Reader], next_lsn: int) -> list[Effect]:
        """Move these readers past records below `next_lsn`, which retention removes. Between steps."""
        self.effects = []
        for reader in readers:
            lose(reader, feed.index, reader.cursors[feed.index], next_lsn, "retention", self.effects)
            if isinstance(reader.share, SharedGroup):
                self.groups.mark(reader.share)
        return self.drain_effects()

    def resume_ahead(self, feed: Feed) -> None:
        """The committed lsn has moved: resume readers and shared groups whose start was ahead of it."""
        readers, feed.ahead = feed.ahead, []
        for reader in readers:
            reader.waiting &= ~(1 << feed.index)
            self._resume_any(reader)

    def cold_read(self, feed: Feed, lsn: int, chunks: list[Chunk | Gap]) -> None:
        """A read from disk is done: resume the readers that waited for it."""
        feed.cache_cold(chunks)
        for reader in feed.waiters.pop(lsn, ()):
            reader.waiting &= ~(1 << feed.index)
            if chunks and chunks[0].next_lsn <= lsn:
                continue
            if not chunks and lsn >= feed.mark(False):
                wait_until_shown(reader, feed)  # its owner lost it, and asked at once would say the same
            else:
                self._resume_any(reader)

    def _deliver_wanted(
        self, feed: Feed, chunk: Chunk, group: Group, first: int, stop: int, readers: list[Reader],
        numbers: list[int], places: Places,
    ) -> None:  # fmt: skip
        wanted, whole = feed.routes.wanted_by(group, numbers)
        denied = feed.routes.denied_to(group, numbers) if feed.routes.denied else None
        if denied is not None:
            self.effects.append(Deliver(group, feed.index, chunk, first, stop, readers, 0, (wanted, places, denied)))
        elif whole and len(set(wanted)) == 1:
            self._deliver_all(feed, chunk, group, first, stop, readers, wanted[0] - 1)
        elif any(wanted):
            self._deliver_some(feed, chunk, group, first, stop, readers, wanted, places)

    def _deliver_all(
        self, feed: Feed, chunk: Chunk, group: Group, first: int, stop: int, readers: list[Reader], form: int
    ) -> None:
        """Every row, in one form."""
        reader = readers[0]
        share = reader.share
        if share is None:
            self.effects.append(all_rows(group, feed.index, chunk, first, stop, readers, form))
            return
        assert isinstance(share, SharedGroup)
        self._assign(feed, share, chunk, first, stop, range(first, stop))

    def _deliver_some(
        self, feed: Feed, chunk: Chunk, group: Group, first: int, stop: int, readers: list[Reader],
        wanted: array[int], places: Places,
    ) -> None:  # fmt: skip
        """The rows whose number is not 0: of each distinct route of the rows, the form + 1."""
        share = readers[0].share
        if share is None:
            table = (wanted, places, None)
            self.effects.append(Deliver(group, feed.index, chunk, first, stop, readers, 0, table))
            return
        assert isinstance(share, SharedGroup)
        self._assign(feed, share, chunk, first, stop, kernel.rows_wanted(first, stop, places, wanted))

    # Shares

    def _assign(self, feed: Feed, share: SharedGroup, chunk: Chunk, first: int, stop: int, rows: Sequence[int]) -> None:
        """Split rows of a chunk among the members with capacity; without any the group falls behind."""
        self.groups.mark(share)
        parts = share.split(feed.index, chunk, rows, first, stop)
        if not parts and len(rows):
            share.reader.group.live[feed.index].discard(share.reader)
            share.reader.cursors[feed.index] = chunk.base_lsn + first
        for member, part_first, part_stop in parts:
            if not member.subscriber.is_shard:
                self._unconfirmed[member] = None
            # A part may span rows of other topics: the table excludes them.
            numbers, places, _ = feed.routes.routes_of(chunk.rows, part_first, part_stop)
            wanted, whole = feed.routes.wanted_by(share.reader.group, numbers)
            table = None
            if whole:
                places = None  # every row is wanted, in the member's one form
            else:
                table = array("I", [1 if number else 0 for number in wanted])
            reader = member.reader
            self.effects.append(
                Deliver(reader.group, feed.index, chunk, part_first, part_stop, [reader], 0, (table, places, None))
            )

    def run_share(self, share: SharedGroup) -> None:
        """Continue a shared group, a piece at a time: first the ranges that members returned, then from its cursors."""
        self.groups.mark(share)
        given = 0
        while share.returned and share.available():
            index, lsn, next_lsn = share.returned.first()
            feed = self.feeds[index]
            chunk = chunk_returned(share, feed, lsn, self.effects)
            if chunk is None:
                return
            share.returned.popleft()
            stop_lsn = min(next_lsn, chunk.next_lsn)
            if stop_lsn <= lsn:
                continue  # its owner died before it wrote them: they were returned after that was known
            if isinstance(chunk, Chunk):
                first, stop = lsn - chunk.base_lsn, stop_lsn - chunk.base_lsn
                numbers, places, stop = feed.routes.routes_of(chunk.rows, first, stop)
                stop_lsn = chunk.base_lsn + stop
            if stop_lsn < next_lsn:
                share.returned.appendleft((index, stop_lsn, next_lsn))
            if stop_lsn == lsn:
                self._deferred_readers[share.reader] = None
                return
            if isinstance(chunk, Chunk):
                wanted, whole = feed.routes.wanted_by(share.reader.group, numbers)
                rows: Sequence[int] = range(first, stop)
                if not whole:
                    rows = kernel.rows_wanted(first, stop, places, wanted) if any(wanted) else []
                self._assign(feed, share, chunk, first, stop, rows)
                if not len(rows) and not share.is_here:
                    self.effects.append(ReportShareDone(share.key, [(index, lsn, stop_lsn)]))
                given += len(chunk.frames) * (stop - first) // chunk.count if len(rows) else 0
                if given >= CATCH_UP_BYTES and share.is_here:
                    self.effects.append(CatchUpPaused(share.reader))
                    return
        if not share.is_here:
            self._report_to_home(share)
            return
        for feed in self.feeds:
            given, live = 0, share.reader.group.live[feed.index]
            while given < CATCH_UP_BYTES and share.available() and share.reader not in live:
                found = next_rows(share.reader, feed, self._backlog_max, self.effects)
                if found is None:
                    break
                chunk, first, stop = found
                numbers, places, stop = feed.routes.routes_of(chunk.rows, first, stop)
                if stop == first:
                    self._deferred_readers[share.reader] = None
                    return
                share.reader.cursors[feed.index] = chunk.base_lsn + stop
                self._deliver_wanted(feed, chunk, share.reader.group, first, stop, [share.reader], numbers, places)
                given += len(chunk.frames) * (stop - first) // chunk.count + 1
            if given >= CATCH_UP_BYTES:
                self.effects.append(CatchUpPaused(share.reader))

    def _report_to_home(self, share: SharedGroup) -> None:
        """Tell the home of a shared group, another shard, whether members here have capacity."""
        if share.available():
            if share.is_parked:
                share.is_parked = False
                self.effects.append(ReportShareReady(share.key))
        elif share.returned or not share.is_parked:
            share.is_parked = True
            self.effects.append(ReturnShare(share.key, list(share.returned)))
            share.returned.clear()
