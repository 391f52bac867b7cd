"""Shared subscriptions across shards. The home of a group, the shard that its key leads to, has its cursors and assigns
ranges of lsns to its own members and to shards with members, by weight; the rules: `router.shared_group_rules`.

    member shard                               home
    ShareJoin      before a SUBACK          -> creates the group, notes it in its journal, answers Wanted
    ShareWeight n  members come and go      -> assigns to this shard in proportion to n
    reads and delivers these ranges         <- ShareParts: ranges for members of this shard
    ShareDone      delivered and journaled  -> these ranges are not outstanding any more
    ShareBack      no member has room       -> assigns them to others, and nothing to this shard until ShareReady
    ShareReady     a member has room again  -> assigns to this shard again
    ShareWeight 0  no member is left, or    -> revokes all outstanding ranges, answers ShareLeft
                   about to join
    ignores ShareParts until then           <- ShareLeft
    Begin          over each new link       -> takes weights and delivered ranges; revokes what else was outstanding

When the home dies, member shards keep what was delivered and drop the rest, also what comes back from a member that
leaves; a restarted home ends no group before every shard has sent Begin. When a member shard dies, the home keeps its
weight and assigns nothing to it until its Begin."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from commitlog.log.partition_types import AckSource
from router import commands as c
from router import effects as e
from router.readers.range_queue import Range
from router.readers.slots import RETAINED_CODE, partition_of, reader_of
from router.readers.subscriber import Subscriber
from router.shard import ShardRouter
from rumq.loop.ports import Call, Clock, CommandQueue, Placement, ShardLinks, Timers
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.session import Session
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.record_forwarder import ShardSink


class SharedGroupJournal(Protocol):
    """`rumq.shards.recovery.journal_writer`"""

    @property
    def recorder(self) -> JournalRecorder: ...
    @property
    def partition(self) -> AckSource: ...
    def shared(self, key: str) -> None:
        """Note where a group whose home is here stands."""

    def flush(self, now_us: int) -> None:
        """Append what was noted."""


class JournalBarrier:
    """Calls that wait until what the journal has noted so far is committed."""

    def __init__(self, journal: SharedGroupJournal, clock: Clock, urgent: Callable[[int], None]) -> None:
        """urgent: somebody waits until a partition is committed"""
        self.journal = journal
        self._clock, self._urgent = clock, urgent
        self._waiting: deque[tuple[int, Callable[[], object]]] = deque()

    def then(self, call: Callable[[], object], *, urgent: bool) -> None:
        self.journal.flush(self._clock.now_us)
        if urgent:
            self._urgent(self.journal.partition.index)
        self._waiting.append((self.journal.partition.next_lsn, call))

    def behind(self, call: Callable[[], object]) -> None:
        """Call behind those that wait; at once if there are none."""
        if self._waiting:
            self._waiting.append((self._waiting[-1][0], call))
        else:
            call()

    def end_turn(self) -> None:
        committed = self.journal.partition.committed_lsn
        while self._waiting and self._waiting[0][0] <= committed:
            self._waiting.popleft()[1]()


class ShareSink(ShardSink):
    """Sends another shard, as a member, the ranges that are assigned to it."""

    def forward(self, effect: e.Deliver) -> None:
        base = effect.chunk.base_lsn
        ranges = [(effect.partition, base + effect.first, base + effect.stop)]
        for reader in effect.readers:
            self._link.say(m.ShareParts(reader.key, ranges))

    def left(self, key: str) -> None:
        self._link.say(m.ShareLeft(key))


class SharedGroups:
    """This shard's members of groups whose home is another shard, and the router's effects on groups of any home."""

    def __init__(
        self, links: ShardLinks, placement: Placement, barrier: JournalBarrier, router: ShardRouter,
        commands: CommandQueue, sessions: Mapping[str, Session],
    ) -> None:  # fmt: skip
        self._links, self._placement, self._barrier = links, placement, barrier
        self._router, self._commands, self._sessions = router, commands, sessions
        # How often a home was sent weight 0 and has not answered. What it assigns before that it revokes by itself.
        self._leaving: Counter[str] = Counter()
        # Key -> (filter, clients here that are about to join): `will_join`
        self._joining: dict[str, tuple[str, int]] = {}
        self.handlers: dict[type, Callable[[Any], None]] = {
            e.ReportShareDone: self._done, e.ShareBegun: self._begun, e.ReportShareWeight: self._weight,
            e.ConfirmShareLeft: self._revoked, e.ReturnShare: self._back, e.ReportShareReady: self._ready,
        }  # fmt: skip

    def carry_out(self, effect: e.Effect) -> None:
        self.handlers[type(effect)](effect)

    def end_turn(self) -> None:
        """Send what waited for the journal."""
        self._barrier.end_turn()

    # Effects

    def _done(self, effect: e.ReportShareDone) -> None:
        self._barrier.then(partial(self._say, effect.key, m.ShareDone(effect.key, effect.ranges)), urgent=False)

    def _begun(self, effect: e.ShareBegun) -> None:
        self._barrier.journal.recorder.shared(effect.key, effect.cursors)

    def _weight(self, effect: e.ReportShareWeight) -> None:
        # Behind the ShareDone of deliveries: what a home still counts as outstanding at weight 0 it assigns anew.
        self._barrier.behind(partial(self._say_weight, effect))

    def _say_weight(self, effect: e.ReportShareWeight) -> None:
        key = effect.key
        if not effect.weight and (key in self._joining or key in self._router.sharing.shares):
            return  # the home would end the group, and begin it behind what is acknowledged after the next SUBACK
        said = self._say(key, m.ShareWeight(key, effect.topic_filter, effect.weight))
        if said and not effect.weight:
            self._leaving[key] += 1

    def _revoked(self, effect: e.ConfirmShareLeft) -> None:
        if isinstance(effect.shard.sink, ShareSink):
            effect.shard.sink.left(effect.key)

    def _back(self, effect: e.ReturnShare) -> None:
        if not (effect.early and self._is_leaving(effect.key)):
            said = self._say(effect.key, m.ShareBack(effect.key, effect.ranges, effect.early))
            if not said and not effect.early:
                self._router.sharing.came_back(effect.key, effect.ranges)

    def _ready(self, effect: e.ReportShareReady) -> None:
        self._say(effect.key, m.ShareReady(effect.key))

    def _say(self, key: str, message: m.AnyMessage) -> bool:
        return self._links.say(self._placement.home(key), message)

    # Messages of a home

    def parts(self, message: m.ShareParts, _: memoryview) -> None:
        if not self._is_leaving(message.key):
            self._commands.put(c.SharePart(message.key, message.ranges))

    def left(self, message: m.ShareLeft, _: memoryview) -> None:
        self._left(message.key)

    def _left(self, key: str) -> None:
        self._leaving[key] -= 1
        if self._leaving[key] <= 0:
            del self._leaving[key]

    def will_join(self, key: str, topic_filter: str) -> None:
        """A client is about to join; it relies on the group from SUBACK on, so the home keeps it until then.

        Whoever says so calls `has_joined` later."""
        self._joining[key] = topic_filter, self._joining.get(key, ("", 0))[1] + 1

    def has_joined(self, key: str) -> None:
        """It has joined, or is gone."""
        topic_filter, count = self._joining.pop(key)
        if count > 1:
            self._joining[key] = topic_filter, count - 1
        elif key not in self._router.sharing.shares:
            self._weight(e.ReportShareWeight(key, topic_filter, 0))

    def _is_leaving(self, key: str) -> bool:
        return bool(self._leaving) and self._leaving[key] > 0

    def dropped(self, key: str, ranges: list[Range]) -> None:
        """Ranges of a partition whose owner has begun anew are not delivered here: their lsns may be others' now.

        The home may have heard of that before it assigned them: it assigns them again, as far as it still counts them
        as ours; others it has dropped as well."""
        if not self._is_leaving(key):
            self._say(key, m.ShareBack(key, ranges, True))
            share = self._router.sharing.shares.get(key)
            if share is not None and not share.is_parked:
                self._say(key, m.ShareReady(key))

    def home_lost(self, home: int) -> None:
        """It will not answer any more, and assigns anew what was not delivered: also what it assigned last, which is
        still to be carried out."""
        for key in [key for key in self._leaving if self._placement.home(key) == home]:
            del self._leaving[key]
        self._commands.put(c.HomeAway(lambda key: self._placement.home(key) == home))

    def weights(self, home: int) -> dict[str, tuple[str, int]]:
        """Key -> (filter, members here) of a home's groups, also of those that a client is about to join."""
        joining = {key: (topic_filter, 1) for key, (topic_filter, _) in self._joining.items()}
        members = {
            key: (share.topic_filter, len(share.members))
            for key, share in self._router.sharing.shares.items()
            if not share.is_here and share.members
        }
        return {key: each for key, each in (joining | members).items() if self._placement.home(key) == home}

    def handed(self, home: int) -> dict[str, list[Range]]:
        """Key -> ranges that members here have of a home's groups, or were delivered lately."""
        found: dict[str, list[Range]] = {}
        for key, share in self._router.sharing.shares.items():
            if share.is_here or self._placement.home(key) != home:
                continue
            ranges = list(share.recent)
            for subscriber, member in share.members.items():
                ranges += [*member.given, *member.before]
                session = self._sessions.get(subscriber.key)
                if session is not None and session.window is not None:
                    ranges += [
                        (partition_of(code), lsn, lsn + 1)
                        for _, _, code, lsn in session.window.waiting()
                        if reader_of(code) == member.reader.number and not code & RETAINED_CODE
                    ]
            found[key] = ranges
        return found


class Confirming(Protocol):
    """`rumq.shards.peers.interest`. has_begun: sessions of this shard are restored, and its groups with them"""

    has_begun: bool

    def confirm(self, filters: list[str], then: Call) -> bool:
        """Whether every shard forwards what these filters match; if not, `then` is called once all do."""


class SharedGroupHome:
    """This shard as the home of groups, for all shards with members. members: by shard"""

    def __init__(
        self, router: ShardRouter, commands: CommandQueue, timers: Timers, barrier: JournalBarrier, interest: Confirming
    ) -> None:
        self.router, self.commands, self.timers = router, commands, timers
        self.barrier, self.interest = barrier, interest
        self.members: dict[int, RemoteMembers] = {}

    @property
    def have_all_begun(self) -> bool:
        """Whether every shard has said which members it has."""
        return all(each.was_begun and not each.early for each in self.members.values())


class RemoteMembers:
    """One other shard's members of groups whose home is here."""

    def __init__(self, shard: int, home: SharedGroupHome) -> None:
        self._home = home
        home.members[shard] = self
        self._subscriber = Subscriber(f"shard {shard} shares", None, is_shard=True)
        self.was_begun = False  # True once the other shard has said which members it has
        self.early: list[Callable[[], c.Command]] = []  # messages that came before the groups here were restored

    def begin(self, link: BusLink, message: m.Begin) -> None:
        self.was_begun = True
        sink = ShareSink(link)
        self._put(
            lambda: c.ShareMembers(self._subscriber, sink, message.shares, message.handed, self._home.have_all_begun)
        )

    def restored(self) -> None:
        """Groups whose home is here have been restored."""
        early, self.early = self.early, []
        for make in early:
            self._home.commands.put(make())

    def lost(self) -> None:
        if self.early:
            self.was_begun = False  # what it said is dropped: it says its members again
            self.early.clear()
        self._home.commands.put(c.ShareAway(self._subscriber))

    def _put(self, make: Callable[[], c.Command]) -> None:
        if self._home.interest.has_begun:
            self._home.commands.put(make())
        else:
            self.early.append(make)

    def _news(self, what: str, message: m.ShareWeight | m.ShareBack | m.ShareReady | m.ShareDone) -> None:
        topic_filter, weight, ranges = "", 0, list[Range]()
        if isinstance(message, m.ShareWeight):
            topic_filter, weight = message.topic_filter, message.weight
        elif not isinstance(message, m.ShareReady):
            ranges = message.ranges
        self._put(lambda: c.ShareNews(self._subscriber, what, message.key, topic_filter, weight, ranges))

    def join(self, link: BusLink, message: m.ShareJoin) -> None:
        """A client of the other shard is about to join: it may rely on the group from SUBACK on, though we die then."""
        home, key = self._home, message.key

        def begin() -> None:
            member = home.router.sharing.member_of(self._subscriber, key)
            weight = member.weight if member is not None else 1
            self._subscriber.sink = self._subscriber.sink or ShareSink(link)
            home.commands.put(c.ShareNews(self._subscriber, "weight", key, message.topic_filter, weight, []))
            home.timers.after_step(commit)

        def commit() -> None:
            home.barrier.journal.shared(key)
            home.barrier.then(partial(link.say, m.Wanted(message.request)), urgent=True)

        if home.interest.confirm([message.topic_filter], begin):
            begin()

    def weight(self, message: m.ShareWeight, _: memoryview) -> None:
        self._news("weight", message)

    def back(self, message: m.ShareBack, _: memoryview) -> None:
        self._news("early" if message.early else "back", message)

    def ready(self, message: m.ShareReady, _: memoryview) -> None:
        self._news("ready", message)

    def done(self, message: m.ShareDone, _: memoryview) -> None:
        self._news("done", message)
