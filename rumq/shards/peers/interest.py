"""Interest: which filters all other shards forward records of. A SUBACK waits until they do.

It does not wait for a shard that is away for 3 s: that one is told of the filter when it is back, and forwards
from where this shard had got to, so nothing is missing then. docs/explanation/guarantees.md, "Between connections".
A shared subscription begins where its home says, so it waits for that one, and is refused alone after 15 s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

from router.shard import ShardRouter
from rumq.loop.ports import Call, Placement, Timers
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.peers.group_joins import GroupJoins
from rumq.shards.peers.shared_groups import SharedGroups

LOOK_SECONDS, LOOKS = 0.5, 6  # a shard whose leader has died is back sooner than so many looks
HOME_LOOKS = 30  # so long a SUBSCRIBE waits for the home of a shared group


class OtherShard(Protocol):
    """Another shard that can be asked: `rumq.shards.peers.peer`."""

    link: BusLink | None

    @property
    def partitions(self) -> list[RemotePartition]: ...
    def begin(self) -> None:
        """Sessions of this shard are restored."""

    def ask(self, question: Callable[[int], m.Question], answered: Callable[[Any, memoryview], None]) -> None:
        """Ask what `question(request)` gives, now or once the shard is linked (again)."""


class ShardInquiry:
    """A question to every other shard. then: called once all in `left` have answered"""

    __slots__ = ("_left", "_then")

    def __init__(self, left: set[int], then: Call) -> None:
        self._left, self._then = left, then

    def discard(self, index: int) -> bool:
        """A shard has answered, or is not waited for any more. returns: whether it was the last one"""
        if index not in self._left:
            return False
        self._left.discard(index)
        if self._left:
            return False
        self._then()
        return True


class Interest:
    """confirmed: filters whose records every other shard forwards

    has_begun: sessions are restored, so it is known what is wanted here"""

    def __init__(
        self, others: Mapping[int, OtherShard], router: ShardRouter, placement: Placement, timers: Timers,
        shared_groups: SharedGroups,
    ) -> None:  # fmt: skip
        """others: complete before the first question"""
        self._others, self._router, self._placement = others, router, placement
        self._timers = timers
        self._joins = GroupJoins(others, placement, timers, shared_groups, self._is_long_away)
        self.has_begun = False
        self.confirmed: set[str] = set()
        # Filters that other shards were asked to forward and have not confirmed, or that a client is about to have.
        self._asking: Counter[str] = Counter()
        self.wants_publishers = False  # True while a subscription here asks for publishers
        self._has_publishers = False  # True once every other shard sends them
        self._asked: set[ShardInquiry] = set()  # inquiries that some shard has not answered yet
        self._meeting: list[Call] = []  # calls that wait for the next `_meet`
        # By shard: looks in a row that found it away. What has reached LOOKS stays until it says where it stands.
        self._away: Counter[int] = Counter()
        self._is_looking = False

    def begin(self, *, wants_publishers: bool) -> None:
        """Sessions are restored: have everything forwarded that they want."""
        self.wants_publishers |= wants_publishers
        self.has_begun = True
        self.confirmed = set(self._router.groups.local_filters.counts)
        self._router.groups.local_filters.take_changes()
        for other in self._others.values():
            other.begin()

    def filters(self) -> list[str]:
        """What a shard that has just joined is to forward: also filters that a client is about to have: its SUBACK
        may wait for nothing more."""
        here = self._router.groups.local_filters.counts
        return [*here, *sorted(self.confirmed.union(self._asking).difference(here))]

    def changes(self) -> None:
        """After a step: tell which filters are wanted here that were not, and which are not any more."""
        local = self._router.groups.local_filters
        if not local.changed or not self.has_begun:
            return
        fresh, gone = local.take_changes()
        # What is being asked for is looked at again when that is answered.
        gone = [f for f in gone if f not in self._asking]
        for other in self._others.values():
            if gone and other.link is not None:
                other.link.say(m.Unwant(gone))
        self.confirmed.difference_update(gone)
        self.confirm([f for f in fresh if f not in self._asking], lambda: None)

    def confirm(self, filters: Iterable[str], then: Call, *, marks: bool = False) -> bool:
        """Whether every shard forwards what these filters match; if not, they are asked to, and `then` is called.

        marks: `Mark` is to come as soon as a watermark moves"""
        needed = [f for f in filters if f not in self.confirmed]
        if not needed or not self._others:
            return True
        self._asking.update(needed)

        def confirmed() -> None:
            self.confirmed.update(needed)
            self._release(needed)
            then()

        self._ask_all(lambda request: m.Want(request, needed, marks), confirmed)
        return False

    def _release(self, filters: list[str]) -> None:
        """What is not subscribed to after all is found out after the next step. Cost: of these filters alone"""
        for topic_filter in filters:
            self._asking[topic_filter] -= 1
            if self._asking[topic_filter] <= 0:
                del self._asking[topic_filter]
        self._router.groups.local_filters.changed.update(dict.fromkeys(filters))

    def _meet(self, then: Call) -> None:
        """Call once every other shard has said how far its log is committed, and sent it: a link may have been cut just
        now, and who subscribes finds what was acknowledged before. Calls of one turn share a question."""
        if not self._meeting:
            self._timers.next_turn(self._ask_where_they_stand)
        self._meeting.append(then)

    def is_away(self, index: int) -> bool:
        """Whether a shard was away for so long that nobody waited for it, and has not said since where it stands."""
        return self._away.get(index, 0) >= LOOKS

    def _not_waited_for(self) -> set[int]:
        return {index for index, other in self._others.items() if other.link is None and self.is_away(index)}

    def _ask_where_they_stand(self) -> None:
        calls, self._meeting = self._meeting, []

        def met() -> None:
            for call in calls:
                call()

        if self._not_waited_for().issuperset(self._others):
            met()
        else:
            self._ask_all(lambda request: m.Want(request, []), met)

    def _ask_all(self, question: Callable[[int], m.Question], then: Call, *, is_want: bool = True) -> None:
        """Ask every other shard; `then` is called later, when all have answered but those that nobody waits for.

        One that is known to be away holds up nobody again: a SUBSCRIBE of many filters asks for a few after the other.
        is_want: the answer comes behind all that is committed there"""
        waited_for = set(self._others).difference(self._not_waited_for())
        asked = ShardInquiry(waited_for, then)

        def answered(index: int, _: m.Wanted, __: memoryview) -> None:
            if is_want:
                self._away.pop(index, None)
            if asked.discard(index):
                self._asked.discard(asked)

        for index, other in self._others.items():
            other.ask(question, partial(answered, index))
        if waited_for:
            self._asked.add(asked)
        else:
            self._timers.next_turn(then)
        self._look_later()

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._timers.later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Have nobody wait for shards that are away for long."""
        self._is_looking = False
        for index, other in self._others.items():
            # Of one that was linked it is known how far its records are here.
            if other.link is None and all(partition.is_met for partition in other.partitions):
                self._away[index] += 1
            elif not self.is_away(index):
                self._away.pop(index, None)
        for asked in list(self._asked):
            for index in self._not_waited_for():
                if asked.discard(index):
                    self._asked.discard(asked)
        self._joins.give_up()
        if self._asked or self._away or self._joins:
            self._look_later()

    def confirm_subscriptions(self, asked: list[tuple[str, str]], then: Call, *, publishers: bool = False) -> bool:
        """As `confirm`, of (filter as written, plain filter); groups of other homes are joined there first.

        publishers: client ids of publishers are to be known, too"""
        if not self._others:
            return True
        if publishers and not self._has_publishers:

            def named() -> None:
                self._has_publishers = True
                if self.confirm_all(asked, then):
                    then()

            self.wants_publishers = True
            self._ask_all(m.WantPublishers, named, is_want=False)
            return False
        return self.confirm_all(asked, then)

    def confirm_all(self, asked: Iterable[tuple[str, str]], then: Call) -> bool:
        plain: list[str] = []
        away: dict[str, str] = {}
        for written, topic_filter in asked:
            if written.startswith("$share/") and not self._placement.is_here(written):
                away[written] = topic_filter
            else:
                plain.append(topic_filter)
        if not plain and not away:
            return True
        left = len(away) + bool(plain)

        def one_less() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._release(plain)
                self._joins.settle(joining)
                then()

        # Others may leave until the last answer is there: neither a filter nor a group is given up before.
        self._asking.update(plain)
        joining = self._joins.begin(away, one_less)
        if away:
            self._look_later()
        if plain and self.confirm(plain, one_less):
            self._meet(one_less)
        return False

    def is_home_away(self, key: str) -> bool:
        """Whether a group is joined now, in a call for `confirm_subscriptions`, whose home has not created it."""
        return self._joins.is_refused(key)

    def _is_long_away(self, index: int) -> bool:
        return self._others[index].link is None and self._away.get(index, 0) >= HOME_LOOKS
