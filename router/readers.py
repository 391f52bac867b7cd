"""Who reads the log: groups of readers that want the same, and where each of them stands.

A *group* is an interned set of subscriptions with what else shapes the bytes its members get; a *reader* is a
member with a cursor per partition. A reader at the end of a partition is *live* there and has no cursor worth
keeping: it gets each new chunk with its group. One that fell behind costs one integer a partition.

Knows no socket: a reader's sink is opaque here."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from router.subscription import Form, Subscription, merge
from router.trie import FilterTrie

if TYPE_CHECKING:
    from router.share import Share


@dataclass(frozen=True, slots=True)
class Wants:
    """What a reader wants: equal wants make one group.

    subscriptions: by filter; located: tell each message's place in the log, hence only what is committed
    shape: whatever else makes the bytes differ (version, packet limit, a client of its own): opaque here
    """

    subscriptions: frozenset[Subscription]
    located: bool = False
    shape: Hashable = None


class Group:
    """Readers that get the same bytes. `live[p]` are those at the end of partition p."""

    __slots__ = ("_by_filter", "cache", "count", "forms", "live", "wants")

    def __init__(self, wants: Wants, partitions: int) -> None:
        self.wants = wants
        self.live: list[dict[Reader, None]] = [{} for _ in range(partitions)]
        self.count = 0
        self.forms: list[Form] = []
        self.cache: object = None  # free for whoever builds the bytes
        self._by_filter: dict[str, list[Subscription]] = {}
        for subscription in wants.subscriptions:
            self._by_filter.setdefault(subscription.topic_filter, []).append(subscription)

    @property
    def filters(self) -> list[str]:
        return list(self._by_filter)

    def form_number(self, filters: list[str]) -> int:
        """Number of the form (an index of `forms`, which only grows) for a topic that `filters` match."""
        matching = [s for f in filters for s in self._by_filter.get(f, ())]
        form = merge(sorted(matching, key=lambda s: (s.identifier, s.topic_filter)))
        try:
            return self.forms.index(form)
        except ValueError:
            self.forms.append(form)
            return len(self.forms) - 1


class Reader:
    """One cursor vector over the log, with somebody at its end.

    cursors[p]: the next lsn wanted of partition p, while not live there
    sink: who gets the messages, None while the session is away; key: what the owner calls this reader
    number: its own among the readers of one session; start: of a replay that is being looked for
    unsure: below these lsns the client may have had messages before the broker died
    """

    __slots__ = (
        "cursors", "gone", "group", "key", "number", "share", "sink", "start", "unsure", "waiting",
    )  # fmt: skip

    def __init__(self, number: int, group: Group, cursors: list[int], key: str) -> None:
        self.number = number
        self.group = group
        self.cursors = cursors
        self.key = key
        self.sink: object = None
        self.share: Share | None = None
        self.start: tuple[str, int] | None = None
        self.unsure: list[int] | None = None
        self.waiting = 0  # bit p: a cold read of partition p is under way
        self.gone: dict[int, int] = {}  # partition -> records that retention took before they were read

    def is_live(self, partition: int) -> bool:
        return self in self.group.live[partition]

    def caught_up(self) -> bool:
        return all(self in live for live in self.group.live)


class Groups:
    """Every group, interned by what it wants, and which groups a filter leads to."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._by_wants: dict[Wants, Group] = {}
        self._by_filter: dict[str, dict[Group, None]] = {}
        self.filters = FilterTrie()
        self.epoch = 0  # grows whenever a topic may have to be matched again

    def __len__(self) -> int:
        return len(self._by_wants)

    def join(self, wants: Wants) -> tuple[Group, list[str]]:
        """The group for `wants` with one member more, and the filters that are new to it."""
        group = self._by_wants.get(wants)
        fresh: list[str] = []
        if group is None:
            group = self._by_wants[wants] = Group(wants, self._partitions)
            fresh = group.filters
            for topic_filter in fresh:
                self._by_filter.setdefault(topic_filter, {})[group] = None
                self.filters.add(topic_filter)
        group.count += 1
        return group, fresh

    def leave(self, group: Group) -> list[str]:
        """Take one member out; returns the filters that nobody of this group waits for any more."""
        group.count -= 1
        if group.count:
            return []
        del self._by_wants[group.wants]
        gone = group.filters
        for topic_filter in gone:
            groups = self._by_filter[topic_filter]
            del groups[group]
            if not groups:
                del self._by_filter[topic_filter]
            self.filters.discard(topic_filter)
        return gone

    def match(self, topic: str) -> tuple[tuple[Group, int], ...]:
        """Each group that wants the topic, with the number of the form it gets."""
        filters_of: dict[Group, list[str]] = {}
        for topic_filter in self.filters.match(topic):
            for group in self._by_filter[topic_filter]:
                filters_of.setdefault(group, []).append(topic_filter)
        return tuple((group, group.form_number(filters)) for group, filters in filters_of.items())
