"""Who reads the log: groups of readers that want the same, and where each of them stands.

A *group* is an interned set of subscriptions with what else shapes the bytes its members get; one reader with many
subscriptions has a private one, which changes in place. A *reader* is a member with a cursor per partition. A reader
at the end of a partition is *live* there and has no cursor worth keeping: it gets each new chunk with its group. One
that fell behind costs one integer a partition.

Knows no socket: a reader's sink is opaque here."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from router.subscription import DeliveryOptions, Permit, Subscription, merge
from router.topic_matching import MATCH_VISITS, UNDER_WAY_MAX, TopicMatching
from router.trie import FilterTrie

if TYPE_CHECKING:
    from router.reader_turns import ReaderTurns
    from router.shared_group import SharedGroup


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What a reader wants: equal wants make one group.

    subscriptions: by filter; located: tell each message's place in the log, hence only what is committed
    shape: whatever else makes the bytes differ (version, packet limit, a client of its own): opaque here
    is_shard: what another shard wants for its own readers
    """

    subscriptions: frozenset[Subscription]
    located: bool = False
    shape: Hashable = None
    is_shard: bool = False


DENIED = -1  # instead of a form's number: the topic is matched, and may not be received
FORMS_MAX = 1 << 14  # of one group: with more of them they are numbered anew
FILTERS_AT_ONCE = 64  # of a group that goes: with more of them it goes in pieces


class Group:
    """Readers that get the same bytes. `live[p]` are those at the end of partition p.

    private: of one reader with many subscriptions, which change in place (`Groups.add`, `Groups.discard`)"""

    __slots__ = ("_by_filter", "_numbers", "cache", "count", "forms", "live", "private", "wants")

    def __init__(self, wants: GroupKey, partitions: int, *, private: bool = False) -> None:
        self.wants = wants
        self.private = private
        self.live: list[dict[Reader, None]] = [{} for _ in range(partitions)]
        self.count = 0
        self.forms: list[DeliveryOptions] = []
        self.cache: object = None  # free for whoever builds the bytes
        self._numbers: dict[DeliveryOptions, int] = {}
        self._by_filter: dict[str, tuple[Subscription, ...]] = {}
        for subscription in wants.subscriptions:
            same = self._by_filter.get(subscription.topic_filter, ())
            self._by_filter[subscription.topic_filter] = (*same, subscription)

    def __len__(self) -> int:
        return len(self._by_filter)

    @property
    def filters(self) -> list[str]:
        return list(self._by_filter)

    @property
    def subscriptions(self) -> list[Subscription]:
        return [subscription for same in self._by_filter.values() for subscription in same]

    def subscriptions_of(self, topic_filter: str) -> tuple[Subscription, ...]:
        return self._by_filter.get(topic_filter, ())

    def put(self, subscription: Subscription) -> bool:
        """Add a subscription to a private group, or replace the one with its filter; False if it is there already."""
        assert self.private
        if self._by_filter.get(subscription.topic_filter) == (subscription,):
            return False
        self._by_filter[subscription.topic_filter] = (subscription,)
        return True

    def take(self, topic_filter: str) -> None:
        """Take a filter from a private group; KeyError when it is not here."""
        assert self.private
        del self._by_filter[topic_filter]

    def some_filters(self, count: int) -> list[str]:
        """The first `count` filters, or as many as there are."""
        return list(islice(self._by_filter, count))

    def form_number(self, filters: list[str], topic: str) -> int:
        """Number of the form (an index of `forms`, which only grows) for a topic that `filters` match; DENIED where
        it may not be received."""
        if self.wants.is_shard:
            del filters[1:]  # all that another shard asks for comes in one form
        covers: dict[Permit | None, bool] = {}  # of thousands of subscriptions most have the same permit
        matching = []
        for topic_filter in filters:
            for subscription in self._by_filter.get(topic_filter, ()):
                covered = covers.get(subscription.permit)
                if covered is None:
                    covered = covers[subscription.permit] = subscription.covers(topic)
                if covered:
                    matching.append(subscription)
        if not matching:
            return DENIED
        form = merge(sorted(matching, key=lambda s: (s.identifier, s.topic_filter)))
        number = self._numbers.get(form)
        if number is None:
            number = self._numbers[form] = len(self.forms)
            self.forms.append(form)
        return number

    def forget_forms(self) -> None:
        """Number forms anew; every topic has to be matched again."""
        self.forms, self._numbers, self.cache = [], {}, None


class Reader:
    """One cursor vector over the log, with somebody at its end.

    cursors[p]: the next lsn wanted of partition p, while not live there
    sink: who gets the messages, None while the session is away; key: what the owner calls this reader
    number: its own among the readers of one session; start: of a replay that is being looked for
    redelivered_below: below these lsns the client may have had messages before the broker died
    """

    __slots__ = (
        "closed", "counted", "cursors", "denied_below", "group", "key", "number", "redelivered_below", "refused",
        "share", "sink", "skipped", "start", "turns", "waiting",
    )  # fmt: skip

    def __init__(self, number: int, group: Group, cursors: list[int], key: str) -> None:
        self.number = number
        self.group = group
        self.cursors = cursors
        self.key = key
        self.sink: object = None
        self.share: SharedGroup | None = None
        self.turns: ReaderTurns | None = None  # of its session, if it waits for its turn when it is behind
        self.closed = False  # nobody wants anything of it any more
        self.start: tuple[str, int] | None = None
        self.redelivered_below: list[int] | None = None
        self.waiting = 0  # bit p: a cold read of partition p is under way
        self.refused = 0  # bit p: its sink has refused something of partition p, of which `Blocked` tells
        # What keeps a record that comes twice, for the socket did not take it, from being counted twice:
        self.counted: set[tuple[int, int]] | None = None  # (partition, lsn) left out once, and to come again
        self.denied_below: dict[int, int] | None = (
            None  # partition -> lsn: what it may not see is counted up to there
        )
        self.skipped: dict[int, tuple[int, int]] | None = None  # partition -> the last range that it lost

    def is_live(self, partition: int) -> bool:
        return self in self.group.live[partition]

    def caught_up(self) -> bool:
        return all(self in live for live in self.group.live)


class Groups:
    """Every group, interned by what it wants or private, and which groups a filter leads to."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._by_wants: dict[GroupKey, Group] = {}
        self._by_filter: dict[str, dict[Group, None]] = {}
        self._private = 0
        self.filters = FilterTrie()
        self.visits_left = 1 << 60  # nodes that matches may look at in this turn
        self._under_way: dict[str, TopicMatching] = {}  # topics whose match takes more than a turn
        self.leaving: list[Group] = []  # have no member, and filters that are still to be taken out: `let_go`
        self.crowded: list[Group] = []  # have more forms than can be good for them
        self.here: dict[str, int] = {}  # filter -> groups of this shard's own readers that have it
        self.changed: dict[str, None] = {}  # filters that came into `here` or left it since `changes`

    def __len__(self) -> int:
        return len(self._by_wants) + self._private

    def join(self, wants: GroupKey) -> tuple[Group, list[str]]:
        """The group for `wants` with one member more, and the filters that are new to it."""
        group = self._by_wants.get(wants)
        fresh: list[str] = []
        if group is None:
            group = self._by_wants[wants] = Group(wants, self._partitions)
            fresh = group.filters
            for topic_filter in fresh:
                self._lead(topic_filter, group)
        group.count += 1
        return group, fresh

    def private(self, wants: GroupKey) -> Group:
        """A group of one member, without subscriptions so far: `add` them. `wants` has the rest."""
        assert not wants.subscriptions
        group = Group(wants, self._partitions, private=True)
        group.count = 1
        self._private += 1
        return group

    def leave(self, group: Group) -> list[str]:
        """Take one member out; returns the filters that nobody of this group waits for any more.

        Those of a large group are taken out later, by `let_go`: until then they lead to nobody."""
        group.count -= 1
        if group.count:
            return []
        if group.private and len(group) > FILTERS_AT_ONCE:
            self._private -= 1
            self.leaving.append(group)
            return []
        if group.private:
            self._private -= 1
        else:
            del self._by_wants[group.wants]
        gone = group.filters
        for topic_filter in gone:
            self._lead_no_more(topic_filter, group)
        return gone

    def let_go(self) -> bool:
        """Take a bounded number of filters of groups that have gone out; whether a group's last one was among them."""
        group = self.leaving[0]
        for topic_filter in group.some_filters(FILTERS_AT_ONCE):
            group.take(topic_filter)
            self._lead_no_more(topic_filter, group)
        if len(group):
            return False
        del self.leaving[0]
        return True

    def add(self, group: Group, subscription: Subscription) -> bool:
        """Add a subscription to a private group, or replace the one with its filter. Cost: the levels of the filter

        returns: whether the topics that the filter matches must be matched again"""
        if not group.put(subscription):
            return False
        if group not in self._by_filter.get(subscription.topic_filter, ()):
            self._lead(subscription.topic_filter, group)
        elif self._under_way:
            self._changed(subscription.topic_filter, group, True)
        return True

    def discard(self, group: Group, topic_filter: str) -> None:
        """Take a filter from a private group; its topics must be matched again. Cost: the levels of the filter

        raises: KeyError when it is not there"""
        group.take(topic_filter)
        self._lead_no_more(topic_filter, group)

    def _count_here(self, topic_filter: str, more: int) -> None:
        count = self.here.get(topic_filter, 0) + more
        if count:
            self.here[topic_filter] = count
        else:
            del self.here[topic_filter]
        if count == (more == 1):
            self.changed[topic_filter] = None

    def changes(self) -> tuple[list[str], list[str]]:
        """Filters that readers of this shard (want now, do not want any more) since the last time."""
        changed, self.changed = self.changed, {}
        return [f for f in changed if f in self.here], [f for f in changed if f not in self.here]

    def route(self, topic: str) -> tuple[tuple[Group, int], ...] | None:
        """As `match`, as far as the turn's visits go; None: go on in another turn, from where it is."""
        matching = self._under_way.get(topic)
        if matching is None:
            if self.visits_left <= 0 or not self._has_room():
                return None
            matching = TopicMatching(topic, self.filters.walk(topic))
            self.visits_left -= MATCH_VISITS
        if not matching.over and self.visits_left > 0:
            self.visits_left -= matching.go_on(self.filters, self._by_filter, self.visits_left)
        if not matching.over:
            self._under_way[topic] = matching
            return None
        self._under_way.pop(topic, None)
        return self._watched(matching.route)

    def go_on(self) -> None:
        """Go on with matches that are under way, the oldest first, whoever waits for them."""
        for matching in self._under_way.values():
            if self.visits_left <= 0:
                return
            if not matching.over:
                self.visits_left -= matching.go_on(self.filters, self._by_filter, self.visits_left)

    def _has_room(self) -> bool:
        """Whether one more match may be under way: one that is over goes, if nobody has asked for it so long."""
        if len(self._under_way) < UNDER_WAY_MAX:
            return True
        done = next((topic for topic, matching in self._under_way.items() if matching.over), None)
        if done is None:
            return False
        del self._under_way[done]
        return True

    def renumbered(self, group: Group) -> None:
        """The forms of a group have other numbers."""
        for matching in self._under_way.values():
            matching.renumbered(group)

    def match(self, topic: str) -> tuple[tuple[Group, int], ...]:
        """Each group that wants the topic, with the number of the form it gets, or DENIED."""
        filters_of: dict[Group, list[str]] = {}
        for topic_filter in self.filters.match(topic):
            for group in self._by_filter[topic_filter]:
                filters_of.setdefault(group, []).append(topic_filter)
        return self._watched(
            tuple((group, group.form_number(filters, topic)) for group, filters in filters_of.items())
        )

    def _watched(self, route: tuple[tuple[Group, int], ...]) -> tuple[tuple[Group, int], ...]:
        for group, number in route:
            if number >= FORMS_MAX and group not in self.crowded:
                self.crowded.append(group)
        return route

    def _changed(self, topic_filter: str, group: Group, leads: bool) -> None:
        for matching in self._under_way.values():
            matching.changed(topic_filter, group, leads)

    def _lead(self, topic_filter: str, group: Group) -> None:
        self._by_filter.setdefault(topic_filter, {})[group] = None
        self.filters.add(topic_filter)
        if self._under_way:
            self._changed(topic_filter, group, True)
        if not group.wants.is_shard:
            self._count_here(topic_filter, 1)

    def _lead_no_more(self, topic_filter: str, group: Group) -> None:
        groups = self._by_filter[topic_filter]
        del groups[group]
        if not groups:
            del self._by_filter[topic_filter]
        self.filters.discard(topic_filter)
        if self._under_way:
            self._changed(topic_filter, group, False)
        if not group.wants.is_shard:
            self._count_here(topic_filter, -1)
