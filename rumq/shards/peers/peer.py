"""One other shard: the link to it, questions that it has not answered, and each message to the part that handles it.

Either shard may die at any time. Questions are asked again over the next link; what the other shard asked dies with
its link."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from commitlog.log.partition_types import PartitionWriter
from router.matching.feed import Feed
from rumq.loop.ports import Call, Clock
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.publish_receiver import PublishReceiver
from rumq.shards.bus.record_forwarder import RemoteSubscriber
from rumq.shards.bus.remote_partition import Admission, OwnerShard, Quota, RemotePartition
from rumq.shards.peers.interest import Interest
from rumq.shards.peers.query_server import Asker, QueryServer, RestartQueries
from rumq.shards.peers.shared_groups import RemoteMembers, SharedGroups

Answered = Callable[[Any, memoryview], None]

MARK_SECONDS = 0.05  # between two sendings of watermarks that nobody waits for


@dataclass(frozen=True, slots=True)
class ThisShard:
    """What another shard is told of this one. partitions, feeds: that it owns, and by partition"""

    index: int
    incarnation: int  # of this run
    partitions: list[PartitionWriter]
    feeds: list[Feed]
    admission: Admission
    quota: Quota


class Parts(NamedTuple):
    """What one other shard is to this one, by what it may do. queries, restarts, groups: shared by all shards"""

    owner: OwnerShard
    publisher: PublishReceiver
    subscriber: RemoteSubscriber
    members: RemoteMembers
    groups: SharedGroups
    queries: QueryServer
    restarts: RestartQueries


class Links(Protocol):
    """Is told of links that begin and end: `rumq.shards.peers.peers`."""

    def joined(self, shard: int) -> None: ...
    def lost(self, shard: int, why: str) -> None: ...
    def tally(self, message: m.Tally) -> None: ...


class OpenQuestions:
    """What the other shard was asked and has not answered yet: it is asked again over the next link."""

    def __init__(self) -> None:
        self._request = 0
        self._open: dict[int, tuple[m.Question, Answered]] = {}

    def add(self, question: Callable[[int], m.Question], answered: Answered) -> m.Question:
        """The question under a number of its own, to be sent."""
        self._request += 1
        asked = question(self._request)
        self._open[self._request] = (asked, answered)
        return asked

    def unanswered(self) -> list[m.Question]:
        return [question for question, _ in self._open.values()]

    def answered(self, message: m.Answer, raw: memoryview) -> None:
        """Give an answer, or a piece of one, to who asked."""
        asked = self._open.get(message.request)
        if asked is not None:
            if not (isinstance(message, m.SearchAnswer) and message.more):
                del self._open[message.request]
            asked[1](message, raw)


class WatermarkSender:
    """Tells the other shard how far the partitions of this one are committed, and how far live records were forwarded:
    at once where a publisher there waits, else every MARK_SECONDS"""

    def __init__(
        self, feeds: list[Feed], publisher: PublishReceiver, subscriber: RemoteSubscriber, clock: Clock
    ) -> None:
        self._feeds, self._publisher, self._subscriber, self._clock = feeds, publisher, subscriber, clock
        self._sent: dict[int, tuple[int, int, int]] = {}  # by partition, the watermark that was sent last
        self._next = 0.0  # monotonic seconds of the next sending of those that nobody waits for
        self._is_last = False

    def forget(self) -> None:
        """The link is lost: the next one gets all of them."""
        self._sent = {}

    def hasten(self) -> None:
        """The next `send` sends also those that nobody waits for."""
        self._next = 0.0

    def set_last(self, is_last: bool) -> None:
        """The next `send` sends all of them. is_last: as of `Mark`"""
        self._is_last = is_last
        self._sent = dict.fromkeys(self._publisher.incoming, (-1, -1, -1))
        self.hasten()

    def send(self, link: BusLink) -> None:
        soon = self._clock.monotonic < self._next
        if not soon:
            self._next = self._clock.monotonic + MARK_SECONDS
        subscriber = self._subscriber
        reader = subscriber.reader
        for index, each in self._publisher.incoming.items():
            each.step_done()
            feed = self._feeds[index]
            committed = feed.partition.committed_lsn
            sent = self._sent.get(index, (0, 0, 0))
            sequence = each.committed_sequence()
            if sequence == sent[0] and soon and not (subscriber.wants_marks and committed != sent[1]):
                continue
            live = feed.mark(False) if reader is not None and reader.is_live(index) else 0
            now = (sequence, feed.committed_lsn, live)
            if now != sent:
                self._sent[index] = now
                link.say(m.Mark(index, sequence, live, feed.committed_lsn, feed.partition.first_lsn, self._is_last))


class PeerRetention:
    """What this shard and the other one need of each other's logs, and what the other could remove.

    needs: partition of ours -> first lsn that a session there has not had"""

    def __init__(self) -> None:
        self.needs: dict[int, int] = {}
        self.trimmable = m.Trimmable(0, [])
        self._sent: dict[int, int] = {}

    def tell(self, link: BusLink, needs: dict[int, int]) -> None:
        """needs: of the other's partitions, by sessions here"""
        if needs != self._sent:
            self._sent = needs
            link.say(m.Needs(needs))

    def needs_told(self, message: m.Needs, _: memoryview) -> None:
        self.needs = message.lsns

    def trimmable_told(self, message: m.Trimmable, _: memoryview) -> None:
        self.trimmable = message

    def lost(self) -> None:
        self._sent = {}
        self.needs.clear()


class Peer:
    """link: None while the other shard is away; is_known: it has said how far its partitions go; is_met: it has over
    this link; has_begun: it was sent `Begin` over this link"""

    def __init__(
        self, index: int, here: ThisShard, parts: Parts, interest: Interest, links: Links, clock: Clock
    ) -> None:
        self.index = index
        self._here, self.parts, self._interest, self._links = here, parts, interest, links
        self.link: BusLink | None = None
        self.is_known = self.is_met = self.has_begun = self.is_drained = False
        self._questions = OpenQuestions()
        self._watermarks = WatermarkSender(here.feeds, parts.publisher, parts.subscriber, clock)
        self.retention = PeerRetention()
        owner, _, subscriber, members, groups, queries, restarts = parts
        self._of_link: dict[type, Callable[[BusLink, Any], None]] = {
            m.Hello: self._hello, m.Begin: self._begin, m.Resumed: owner.resumed,
            m.Want: lambda link, message: subscriber.want(link, message, self._confirmed),
            m.WantPublishers: subscriber.want_publishers, m.ShareJoin: members.join,
            m.ReadFrom: lambda link, message: queries.read(self._asker(link), message),
            m.StartQuestion: lambda link, message: queries.find_start(self._asker(link), message),
            m.RetainedQuestion: lambda link, message: queries.find_retained(self._asker(link), message),
            m.Leaving: lambda link, message: queries.leaving(self._asker(link), message),
            m.FindTags: lambda link, message: restarts.find_tags(self._asker(link), message),
            m.Resume: self._resume,
        }  # fmt: skip
        self._others: dict[type, Callable[[Any, memoryview], None]] = {
            m.PublishedRecords: self._published, m.Rows: owner.rows, m.Mark: owner.mark, m.Numbered: owner.numbered,
            m.Publishers: owner.publishers, m.Refusing: owner.refusing, m.RetainedFull: owner.retained_full,
            m.Unwant: subscriber.unwant, m.ShareWeight: members.weight, m.ShareBack: members.back,
            m.ShareReady: members.ready, m.ShareDone: members.done, m.ShareParts: groups.parts,
            m.ShareLeft: groups.left,
            **dict.fromkeys((m.Wanted, m.Chunks, m.SearchAnswer, m.Tags), self._questions.answered),
            m.Needs: self.retention.needs_told, m.Trimmable: self.retention.trimmable_told, m.Drained: self._drained,
            m.Tally: lambda message, _: links.tally(message),
        }  # fmt: skip

    @property
    def partitions(self) -> list[RemotePartition]:
        """Those that the other shard owns."""
        return self.parts.owner.partitions

    # The link

    def linked(self, link: BusLink) -> None:
        """A connection to the other shard is there; whatever came over an earlier one has been handled."""
        if self.link is not None:
            self.link.end()
        self.link = link
        self.is_met = self.is_drained = False
        feeds, partitions = self._here.feeds, self._here.partitions
        own = {p.index: (p.first_lsn, feeds[p.index].visible_lsn) for p in partitions}
        starts = {p.index: p.starts for p in partitions}
        ring = link.ring.identity if link.ring is not None else 0
        link.say(m.Hello(self._here.index, self._here.incarnation, own, starts, ring))

    def received(self, message: m.AnyMessage, raw: memoryview) -> None:
        kind = type(message)
        handler = self._others.get(kind)
        if handler is not None:
            handler(message, raw)
            return
        assert self.link is not None
        self._of_link[kind](self.link, message)

    def lost(self, why: str) -> None:
        parts = self.parts
        self.link = None
        self.has_begun = False
        parts.subscriber.lost()
        parts.members.lost()
        parts.groups.home_lost(self.index)
        parts.publisher.lost()
        parts.owner.lost()
        self._watermarks.forget()
        self.retention.lost()
        self._links.lost(self.index, why)

    def drained(self) -> None:
        """The link has room again."""
        self.parts.subscriber.drained()

    def say(self, message: m.AnyMessage) -> bool:
        """Send a message; False if the other shard is away."""
        if self.link is None:
            return False
        self.link.say(message)
        return True

    def _hello(self, link: BusLink, message: m.Hello) -> None:
        link.share(message.ring)
        self.parts.publisher.joined(message.incarnation)
        self.parts.owner.joined(link, message)
        self.is_known = self.is_met = True
        self._ask_publishers(link)  # before anything that they have published comes
        if self._interest.has_begun:
            self.begin()
        # Behind `Begin`, which says what is wanted here, and which groups are joined, or about to be.
        for question in self._questions.unanswered():
            link.say(question)
        self._links.joined(self.index)

    def begin(self) -> None:
        """Sessions are restored here: have everything forwarded that they want, from where this shard stands.

        Once over each link, and not before `Hello` says where that is: what a `Begin` does not name, a home assigns
        anew."""
        self.parts.members.restored()
        if self.link is not None and self.is_met:
            groups, feeds = self.parts.groups, self._here.feeds
            cursors = {p.index: feeds[p.index].visible_lsn for p in self.partitions}
            self._ask_publishers(self.link)
            self.link.say(
                m.Begin(self._interest.filters(), cursors, groups.weights(self.index), groups.handed(self.index))
            )
            self.has_begun = True

    def _begin(self, link: BusLink, message: m.Begin) -> None:
        self.parts.subscriber.begin(link, message, self._confirmed)
        self.parts.members.begin(link, message)
        for index, (full, why) in self._here.admission.reasons().items():
            link.say(m.Refusing(index, full, why))
        for index in self._here.quota.full:
            link.say(m.RetainedFull(index, True))

    def _ask_publishers(self, link: BusLink) -> None:
        if self._interest.wants_publishers:
            link.say(m.WantPublishers(0))  # nobody waits for the answer

    # Publishing and watermarks

    def _published(self, message: m.PublishedRecords, raw: memoryview) -> None:
        assert self.link is not None
        self.parts.publisher.published(self.link, message, raw)

    def _resume(self, link: BusLink, message: m.Resume) -> None:
        source = self.parts.publisher.incoming[message.partition].source
        self.parts.restarts.resume(self._asker(link), source, message)

    def end_turn(self) -> None:
        """Send watermarks of this shard's partitions: at once where somebody waits for them."""
        if self.link is not None and self.parts.publisher.incoming:
            self._watermarks.send(self.link)

    def set_last(self, is_last: bool) -> None:
        """This shard is handed over, and reads nothing more of the other one; or it goes on. `Mark.is_last`"""
        self._watermarks.set_last(is_last)
        self.end_turn()

    def _confirmed(self, answer: Call) -> None:
        """Answer where this shard stands, once it is known to be the one that leads.

        R15 of docs/explanation/replication.md"""

        def say() -> None:
            self._watermarks.hasten()
            self.end_turn()
            answer()

        self.parts.queries.when_newest(say)

    # Questions

    def _asker(self, link: BusLink) -> Asker:
        return Asker(self.index, link, self.parts.subscriber)

    def ask(self, question: Callable[[int], m.Question], answered: Answered) -> None:
        """Ask `question(request)`; `answered(answer, raw)` when it answers, be it after its next start."""
        asked = self._questions.add(question, answered)
        if self.link is not None and self.is_met:
            self.link.say(asked)

    # Retention and shutdown

    def tell_needs(self, needs: dict[int, int]) -> None:
        if self.link is not None:
            self.retention.tell(self.link, needs)

    def _drained(self, message: m.Drained, _: memoryview) -> None:
        self.is_drained = True
