"""One other shard: what we ask of it and hand to it, what it asks of us and hands to us.

Either may die at any time. What it was asked and what it was handed is asked and handed again when it is back; its own
questions die with it. Knows no client and no socket but the link."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from commitlog import Chunk
from commitlog.chunk import FLAG_QOS
from router import commands as c
from router.subscriber import Subscriber
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.publish_receiver import Incoming
from rumq.shards.bus.publisher_names import PublisherNames
from rumq.shards.bus.query_server import QueryServer
from rumq.shards.bus.record_forwarder import RecordForwarder
from rumq.shards.bus.shared_groups import ShareSink

if TYPE_CHECKING:
    from rumq.shards.bus.remote_partition import RemotePartition
    from rumq.shards.turn.turn import Driver

MARK_SECONDS = 0.05  # marks that nobody waits for are told so often


class Peer:
    def __init__(self, driver: Driver, index: int, partitions: list[RemotePartition]) -> None:
        """partitions: those that the other shard owns"""
        self._driver = driver
        self.index = index
        self.partitions = partitions
        self.link: BusLink | None = None
        self.is_known = False  # it has said how far its partitions are
        self.is_drained = False
        self._request = 0
        self._asked: dict[int, tuple[Any, Callable[..., None]]] = {}
        self._answering = QueryServer(driver)
        # What it gets of us.
        self._subscriber: Subscriber | None = None
        self._sharer = Subscriber(f"shard {index} shares", None, is_shard=True)
        self.has_begun = False  # it knows what members of its shares are here
        self.was_begun = False  # it has said, at least once, what members of our shares it has
        self.said_early: list[Callable[[], Any]] = []  # what it said of shares before they were restored here
        self._early_wants: list[m.Want] = []
        self._incoming: dict[int, Incoming] = {}
        self._introducing: PublisherNames | None = None  # it has subscribers who ask who published
        self._told: dict[int, tuple[int, int, int]] = {}
        self._told_needs: dict[int, int] = {}
        self._wants_marks = False
        self._next_marks = 0.0
        self.needs: dict[
            int, int
        ] = {}  # partition of ours -> first lsn that a lasting session there has not had
        self.trimmable = m.Trimmable(0, [])
        self._heard: dict[type, Callable[[Any, memoryview], None]] = {
            m.Hello: self._hello, m.Begin: self._begin, m.Resume: self._resume, m.Resumed: self._resumed,
            m.Published: self._published, m.Numbered: self._numbered, m.Mark: self._mark, m.Refusing: self._refusing,
            m.RetainedFull: self._retained_full,
            m.WantPublishers: self._want_publishers, m.Publishers: self._publishers,
            m.Want: self._want, m.Wanted: self._answered, m.Unwant: self._unwant, m.Rows: self._rows,
            m.ReadFrom: self._question, m.FindStart: self._question, m.FindRetained: self._question,
            m.FindTags: self._question, m.Leaving: self._question, m.Chunks: self._answered, m.Found: self._answered,
            m.Tags: self._answered,
            m.Needs: self._needs, m.Trimmable: self._trimmable, m.Tally: self._tally, m.Drained: self._drained,
            m.ShareJoin: self._share_join, m.ShareWeight: self._share_weight,
            m.ShareParts: self._share_parts, m.ShareBack: self._share_back, m.ShareReady: self._share_ready,
            m.ShareDone: self._share_done, m.ShareLeft: self._share_left,
        }  # fmt: skip

    # The link

    def linked(self, link: BusLink) -> None:
        """A connection to the other shard is there; whatever came over an earlier one has been taken."""
        if self.link is not None:
            self.link.end()
        self.link = link
        self.is_drained = False
        driver = self._driver
        feeds = driver.shard.feeds
        own = {
            p.index: (p.first_lsn, feeds[p.index].visible_lsn)
            for p in driver.store.partitions
            if not p.is_mirrored
        }
        link.say(m.Hello(driver.index, driver.incarnation, own))

    def heard(self, message: Any, raw: memoryview) -> None:
        self._heard[type(message)](message, raw)

    def lost(self, why: str) -> None:
        self.link = None
        if self._subscriber is not None:
            self._driver.commands.put(c.End(self._subscriber, []))
            self._subscriber = None
        self._introducing = None
        self.has_begun = False
        if self.said_early:
            self.was_begun = False  # what it said was not listened to yet
            self.said_early.clear()
        self._early_wants.clear()
        self._driver.shares.home_lost(self.index)
        self._driver.commands.put(c.ShareAway(self._sharer))
        self._driver.shard.sharing.home_lost(lambda key: self._driver.home(key) == self.index)
        self._incoming.clear()
        self._told.clear()
        self._told_needs = {}
        self.needs.clear()
        for partition in self.partitions:
            partition.outgoing.detach()
            self._driver.retaining.elsewhere(partition.index, False)
        self._driver.peers.lost(self, why)

    def drained(self) -> None:
        """The bus has room again."""
        if self._subscriber is not None:
            self._driver.commands.put(c.Ready(self._subscriber))

    def _hello(self, message: m.Hello, _: memoryview) -> None:
        link, driver = self.link, self._driver
        assert link is not None
        self._incoming = {
            p.index: Incoming(p, message.incarnation, partial(driver.numbering.number, p))
            for p in driver.store.partitions
            if not p.is_mirrored
        }
        for partition in self.partitions:
            first_lsn, next_lsn = message.partitions[partition.index]
            driver.peers.stands(partition, first_lsn, next_lsn)
            outgoing = partition.outgoing
            if outgoing.pending_bytes:
                link.say(m.Resume(partition.index, outgoing.committed_there))
            else:
                outgoing.attach(link.say, outgoing.committed_lsn)
        self.is_known = True
        self._ask_publishers()  # before anything that they have published comes
        for question, _done in list(self._asked.values()):
            link.say(question)
        if driver.peers.has_begun:
            self.begin()
        driver.peers.known(self)

    def begin(self) -> None:
        """Our sessions and shares are there: have it send what is wanted here, from where we stand."""
        early, self.said_early = self.said_early, []
        for make in early:
            self._driver.commands.put(make())
        if self.link is not None:
            feeds = self._driver.shard.feeds
            cursors = {p.index: feeds[p.index].visible_lsn for p in self.partitions}
            here = self._driver.shard.groups.local_filters
            # Also what a client is about to have: its SUBSCRIBE waits for nothing more.
            filters = [*here, *sorted(self._driver.peers.relied_on.difference(here))]
            shares = self._driver.shares
            self._ask_publishers()
            self.link.say(m.Begin(filters, cursors, shares.weights(self.index), shares.handed(self.index)))
            self.has_begun = True

    def _begin(self, message: m.Begin, _: memoryview) -> None:
        assert self.link is not None
        driver = self._driver
        self._subscriber = Subscriber(f"shard {self.index}", None, is_shard=True)
        own = [p.index for p in driver.store.partitions if not p.is_mirrored]
        sink = RecordForwarder(self.link, driver.shard.feeds, driver.commands, self.introduce)
        driver.commands.put(c.Attach(self._subscriber, sink))
        driver.commands.put(c.Interest(self._subscriber, message.filters, own, message.cursors))
        early, self._early_wants = self._early_wants, []
        for want in early:
            self._want(want, _)
        self.was_begun = True
        sink_of_shares = ShareSink(self.link)
        self._of_shares(
            lambda: c.ShareMembers(
                self._sharer, sink_of_shares, message.shares, message.handed, driver.peers.all_were_begun
            )
        )  # fmt: skip
        for index, (full, why) in driver.refusing.reasons().items():
            self.link.say(m.Refusing(index, full, why))
        for index in driver.retaining.full:
            self.link.say(m.RetainedFull(index, True))

    # Publishing

    def _resume(self, message: m.Resume, _: memoryview) -> None:
        self._answering.resume(self, self._incoming[message.partition]._source, message)

    def _resumed(self, message: m.Resumed, _: memoryview) -> None:
        assert self.link is not None
        outgoing = self._driver.store.partitions[message.partition].outgoing
        outgoing.attach(self.link.say, max(message.sequence, outgoing.committed_lsn))
        self._driver.writing.released(message.partition)

    def _published(self, message: m.Published, raw: memoryview) -> None:
        assert self.link is not None
        command = self._incoming[message.partition].take(message, raw, self.link.say)
        self._driver.shard_totals.taken_over += message.count
        self._driver.commands.put(command)
        if command.flags & FLAG_QOS:
            self._driver.writing.urgent(message.partition)

    def _numbered(self, message: m.Numbered, _: memoryview) -> None:
        self._driver.store.partitions[message.partition].outgoing.numbered(message.publishers)

    def _retained_full(self, message: m.RetainedFull, _: memoryview) -> None:
        self._driver.retaining.elsewhere(message.partition, message.full)

    def _refusing(self, message: m.Refusing, _: memoryview) -> None:
        self._driver.refusing.elsewhere(message.partition, message.full, message.why)

    # Marks

    def end_turn(self, monotonic: float) -> None:
        """Tell how far our partitions have come: at once if somebody waits for it."""
        if self.link is None or not self._incoming:
            return
        soon = monotonic < self._next_marks
        if not soon:
            self._next_marks = monotonic + MARK_SECONDS
        reader = self._subscriber.main if self._subscriber is not None else None
        for index, incoming in self._incoming.items():
            incoming.placed()
            feed = self._driver.shard.feeds[index]
            committed = feed.partition.committed_lsn
            told = self._told.get(index, (0, 0, 0))
            sequence = incoming.committed()
            if sequence == told[0] and (soon and not (self._wants_marks and committed != told[1])):
                continue
            live = feed.mark(False) if reader is not None and reader.is_live(index) else 0
            now = (sequence, feed.committed_lsn, live)
            if now != told:
                self._told[index] = now
                self.link.say(m.Mark(index, sequence, live, feed.committed_lsn, feed.partition.first_lsn))

    def _mark(self, message: m.Mark, _: memoryview) -> None:
        driver = self._driver
        partition = driver.store.partitions[message.partition]
        partition.first_lsn = message.first_lsn
        if partition.outgoing.acknowledged(message.sequence, message.committed_lsn):
            driver.writing.released(message.partition)
        driver.commands.put(c.RemoteWatermark(message.partition, message.live_lsn, message.committed_lsn))

    # What it wants of us

    def _want(self, message: m.Want, _: memoryview) -> None:
        driver = self._driver
        self._wants_marks |= message.marks
        if self._subscriber is None or self.link is None:
            self._early_wants.append(message)  # asked again before `Begin`, of a run before
            return
        driver.commands.put(c.Interest(self._subscriber, message.filters, []))
        driver.after_step(self._confirm(self.link, message.request))

    def _confirm(self, link: BusLink, request: int) -> Callable[[], None]:
        def confirm() -> None:
            self._next_marks = 0.0
            self.end_turn(self._driver.monotonic)  # what is live below is said before
            link.say(m.Wanted(request))

        return confirm

    def _unwant(self, message: m.Unwant, _: memoryview) -> None:
        if self._subscriber is not None:
            self._driver.commands.put(c.NoInterest(self._subscriber, message.filters))

    # Who publishes

    def _ask_publishers(self) -> None:
        if self._driver.peers.wants_publishers and self.link is not None:
            self.link.say(m.WantPublishers(0))  # nobody waits for the answer

    def _want_publishers(self, message: m.WantPublishers, _: memoryview) -> None:
        assert self.link is not None
        if self._introducing is None:
            own = [p for p in self._driver.store.partitions if not p.is_mirrored]
            self._introducing = PublisherNames(self.link, own)
        self.introduce_all()
        self.link.say(m.Wanted(message.request))

    def _publishers(self, message: m.Publishers, _: memoryview) -> None:
        self._driver.store.partitions[message.partition].name_publishers(message.first, message.names)

    def introduce(self, index: int) -> None:
        """Tell it who publishes to a partition of ours, if it asks for that: before what they publish."""
        if self._introducing is not None:
            self._introducing.introduce(index)

    def introduce_all(self) -> None:
        if self._introducing is not None:
            self._introducing.introduce_all()

    def _rows(self, message: m.Rows, raw: memoryview) -> None:
        partition = self._driver.store.partitions[message.partition]
        partition.name_topics(message.topics)
        rows, frames = bytes(raw[: message.rows_len]), bytes(raw[message.rows_len :])
        chunk = Chunk(message.base_lsn, message.count, message.base_ts, message.flags, rows, frames)
        self._driver.commands.put(c.RemoteChunk(message.partition, chunk))

    # Shares

    def _of_shares(self, make: Callable[[], Any]) -> None:
        """A command about shares whose home is here: it waits until they have been restored."""
        if self._driver.is_restored:
            self._driver.commands.put(make())
        else:
            self.said_early.append(make)

    def _share_join(self, message: m.ShareJoin, _: memoryview) -> None:
        """Another shard's client joins a share whose home is here."""
        driver, link = self._driver, self.link
        assert link is not None

        def begin() -> None:
            member = driver.shard.sharing.member_of(self._sharer, message.key)
            weight = member.weight if member is not None else 1
            self._sharer.sink = self._sharer.sink or ShareSink(link)
            driver.commands.put(
                c.ShareNews(self._sharer, "weight", message.key, message.topic_filter, weight, [])
            )
            # Its client may rely on the share from SUBACK on, whether or not this shard dies.
            wanted = partial(link.say, m.Wanted(message.request))
            driver.after_step(lambda: driver.shares.relied_on(message.key, wanted))

        if driver.peers.confirm([message.topic_filter], begin):
            begin()

    def _share_weight(self, message: m.ShareWeight, _: memoryview) -> None:
        news = c.ShareNews(self._sharer, "weight", message.key, message.topic_filter, message.weight, [])
        self._of_shares(lambda: news)

    def _share_back(self, message: m.ShareBack, _: memoryview) -> None:
        what = "early" if message.early else "back"
        self._of_shares(lambda: c.ShareNews(self._sharer, what, message.key, "", 0, message.ranges))

    def _share_ready(self, message: m.ShareReady, _: memoryview) -> None:
        self._of_shares(lambda: c.ShareNews(self._sharer, "ready", message.key, "", 0, []))

    def _share_done(self, message: m.ShareDone, _: memoryview) -> None:
        self._of_shares(lambda: c.ShareNews(self._sharer, "done", message.key, "", 0, message.ranges))

    def _share_left(self, message: m.ShareLeft, _: memoryview) -> None:
        self._driver.shares.left(message.key)

    def _share_parts(self, message: m.ShareParts, _: memoryview) -> None:
        if self._driver.shares.is_leaving(message.key):
            return  # handed out before the home knew that no member is here
        self._driver.commands.put(c.SharePart(message.key, message.ranges))

    # Questions

    def ask(self, make: Callable[[int], Any], done: Callable[..., None]) -> int:
        """Ask; `done(answer, raw)` when it answers, be it after its next start."""
        self._request += 1
        question = make(self._request)
        self._asked[self._request] = (question, done)
        if self.link is not None and self.is_known:
            self.link.say(question)
        return self._request

    def _answered(self, message: Any, raw: memoryview) -> None:
        asked = self._asked.get(message.request)
        if asked is not None:
            if not getattr(message, "more", False):
                del self._asked[message.request]
            asked[1](message, raw)

    def _question(self, message: Any, _: memoryview) -> None:
        assert self.link is not None
        self._answering.answer(self, self.link, message)

    # Retention and the end

    def tell_needs(self, needs: dict[int, int]) -> None:
        if self.link is not None and needs != self._told_needs:
            self._told_needs = needs
            self.link.say(m.Needs(needs))

    def _needs(self, message: m.Needs, _: memoryview) -> None:
        self.needs = message.lsns

    def _trimmable(self, message: m.Trimmable, _: memoryview) -> None:
        self.trimmable = message

    def _tally(self, message: m.Tally, _: memoryview) -> None:
        if self._driver.announcing is not None:
            self._driver.announcing.heard(message)

    def _drained(self, message: m.Drained, _: memoryview) -> None:
        self.is_drained = True

    @property
    def unacknowledged_bytes(self) -> int:
        """Of what its partitions were handed; of those that cannot be written no acknowledgement will come."""
        offline = self._driver.refusing.is_offline_elsewhere
        return sum(p.outgoing.pending_bytes for p in self.partitions if not offline(p.index))
