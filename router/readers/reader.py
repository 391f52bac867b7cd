"""A reader of the log, and the group of readers that it belongs to.

A *group* is an interned set of subscriptions with what else shapes the bytes its members get; one reader with many
subscriptions has a private one, which changes in place. A *reader* is a member with a cursor per partition. A reader
at the end of a partition is *live* there and needs no cursor: it gets each new chunk with its group. One that is
behind costs one integer a partition."""
# compiled: warm

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from router.readers.reader_turns import ReaderTurns
from router.readers.subscription import DeliveryOptions, Subscription, TopicPermit, merge


class SinkOutbox(Protocol):
    """Bytes that wait for a socket. refused: its owner is to be told when there is room again"""

    refused: bool

    def waits(self) -> bool:
        """Whether something is on its way out."""


class DeliverySink(Protocol):
    """Where a reader's messages go. The router asks only whether there is one; whoever carries out effects uses it."""

    @property
    def is_open(self) -> bool: ...
    @property
    def outbox(self) -> SinkOutbox: ...


class SharedMembership(Protocol):
    """A shared subscription, as its own reader and those of its members refer to it: `router.readers.shared_group`."""

    key: str
    reader: Reader
    is_here: bool

    def readers(self) -> list[Reader]:
        """Of its members."""


Subscriptions = frozenset[Subscription] | tuple[Subscription]


def subscription_set(subscriptions: Collection[Subscription]) -> Subscriptions:
    """A set of subscriptions, equal to that of the same ones. A single one is a tuple, of a quarter of the bytes."""
    if len(subscriptions) == 1:
        (only,) = subscriptions
        return (only,)
    return frozenset(subscriptions)


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Readers with equal keys are one group.

    subscriptions: `subscription_set` makes it
    committed_only: each message is sent with its place in the log, hence only once it is committed
    shape: whatever else makes the bytes differ (version, packet limit, client): opaque here
    is_shard: the subscriptions of another shard's readers
    """

    subscriptions: Subscriptions
    committed_only: bool = False
    shape: Hashable = None
    is_shard: bool = False


class LiveReaders:
    """The readers of a group at the end of one partition, in the order in which they came there.

    Most groups have one reader, and many of them never a message: for one there is no dict, and no list before it is
    asked for."""

    __slots__ = ("_listed", "_only", "_readers")

    def __init__(self) -> None:
        self._only: Reader | None = None
        self._readers: dict[Reader, None] | None = None  # instead of `_only`, once there were two
        self._listed: list[Reader] | None = None

    def __contains__(self, reader: Reader) -> bool:
        return self.has(reader)

    def has(self, reader: Reader) -> bool:
        """As `in`."""
        return reader is self._only if self._readers is None else reader in self._readers

    def __len__(self) -> int:
        if self._readers is None:
            return 0 if self._only is None else 1
        return len(self._readers)

    def add(self, reader: Reader) -> None:
        self._listed = None
        if self._readers is not None:
            self._readers[reader] = None
        elif self._only is None or self._only is reader:
            self._only = reader
        else:
            self._readers = {self._only: None, reader: None}
            self._only = None

    def discard(self, reader: Reader) -> bool:
        """Whether it was among them."""
        if reader not in self:
            return False
        self._listed = None
        if self._readers is None:
            self._only = None
        else:
            del self._readers[reader]
        return True

    def listed(self) -> list[Reader]:
        """All of them as they are now: a list that nobody changes. Cost: constant while they stay the same"""
        if self._listed is None:
            if self._readers is not None:
                self._listed = list(self._readers)
            else:
                self._listed = NOBODY if self._only is None else [self._only]
        return self._listed


class Target:
    """What filters of a group with equal options lead to. filters: how many there are

    key: the group and the options; subscriptions: of one of the filters, for their options"""

    __slots__ = ("filters", "group", "key", "subscriptions")

    def __init__(self, group: Group, key: Hashable, subscriptions: tuple[Subscription, ...]) -> None:
        self.group, self.key, self.subscriptions = group, key, subscriptions
        self.filters = 0


NOBODY: list[Reader] = []
FORMS_LISTED_MAX = 4  # with more of them a group has a table of their numbers
DENIED = -1  # instead of a form's number: the topic is matched, and may not be received


NO_FILTERS: dict[str, tuple[Subscription, ...]] = {}


class Group:
    """Readers that get the same bytes. `live[p]` are those at the end of partition p.

    private: of one reader with many subscriptions, which change in place (`Groups.add`, `Groups.discard`)"""

    __slots__ = (
        "_by_filter", "_numbers", "_only", "cache", "committed_only", "count", "forms", "is_shard", "live", "private",
        "shape", "wants",
    )  # fmt: skip

    def __init__(
        self, wants: GroupKey, partitions: int, *, private: bool = False, live: list[LiveReaders] | None = None
    ) -> None:
        """live: of a group whose readers are never live, as all of them have it"""
        self.wants = wants
        self.committed_only, self.is_shard, self.shape = wants.committed_only, wants.is_shard, wants.shape
        self.private = private
        self.live = [LiveReaders() for _ in range(partitions)] if live is None else live
        self.count = 0
        self.forms: list[DeliveryOptions] = []
        self.cache: object = None  # free for whoever builds the bytes
        self._numbers: dict[DeliveryOptions, int] | None = None  # of `forms`, once there are many
        # A group of one subscription, as most are, has no dict of it.
        self._only: tuple[Subscription, ...] | None = None
        self._by_filter: dict[str, tuple[Subscription, ...]] = NO_FILTERS
        if not private and len(wants.subscriptions) == 1:
            self._only = tuple(wants.subscriptions)
            return
        self._by_filter = {}
        for subscription in wants.subscriptions:
            same = self._by_filter.get(subscription.topic_filter, ())
            self._by_filter[subscription.topic_filter] = (*same, subscription)

    def __len__(self) -> int:
        return len(self._by_filter) if self._only is None else 1

    @property
    def filters(self) -> list[str]:
        return list(self._by_filter) if self._only is None else [self._only[0].topic_filter]

    @property
    def subscriptions(self) -> list[Subscription]:
        if self._only is not None:
            return list(self._only)
        return [subscription for same in self._by_filter.values() for subscription in same]

    def subscriptions_of(self, topic_filter: str) -> tuple[Subscription, ...]:
        if self._only is not None:
            return self._only if self._only[0].topic_filter == topic_filter else ()
        return self._by_filter.get(topic_filter, ())

    def set_subscription(self, subscription: Subscription) -> bool:
        """Add a subscription to a private group, or replace the one with its filter; False: nothing changes."""
        assert self.private
        if self._by_filter.get(subscription.topic_filter) == (subscription,):
            return False
        self._by_filter[subscription.topic_filter] = (subscription,)
        return True

    def remove_filter(self, topic_filter: str) -> None:
        """Remove a filter from a private group; KeyError when it is not here."""
        assert self.private
        del self._by_filter[topic_filter]

    def some_filters(self, count: int) -> list[str]:
        """The first `count` filters of a private group, or as many as there are."""
        return list(islice(self._by_filter, count))

    def form_number(self, filters: list[str], topic: str) -> int:
        """Number of the form (an index of `forms`, which only grows) for a topic that `filters` match, or DENIED."""
        matching = [s for each in filters for s in self.subscriptions_of(each) if s.covers(topic)]
        return self._number(matching)

    def form_for(self, counts: dict[Target, int], topic: str) -> int:
        """As `form_number`, of filters with these targets. counts: how many filters have each"""
        matching: list[Subscription] = []
        covers: dict[TopicPermit | None, bool] = {}  # of thousands of subscriptions most have the same permit
        for target, count in counts.items():
            for subscription in target.subscriptions:
                covered = covers.get(subscription.permit)
                if covered is None:
                    covered = covers[subscription.permit] = subscription.covers(topic)
                if covered:
                    # Each identifier is sent as often as its subscriptions match (MQTT 5.0, 3.3.4).
                    matching += [subscription] * (count if subscription.identifier else 1)
        return self._number(matching)

    def _number(self, matching: list[Subscription]) -> int:
        if not matching:
            return DENIED
        if len(matching) > 1:
            matching.sort(key=lambda s: s.identifier)
        form = merge(matching)
        if self._numbers is None:
            for number, known in enumerate(self.forms):
                if known is form or known == form:
                    return number
            self.forms.append(form)
            if len(self.forms) > FORMS_LISTED_MAX:
                self._numbers = {known: number for number, known in enumerate(self.forms)}
            return len(self.forms) - 1
        known_number = self._numbers.get(form)
        if known_number is None:
            known_number = self._numbers[form] = len(self.forms)
            self.forms.append(form)
        return known_number

    def forget_forms(self) -> None:
        """Renumber forms; every topic has to be matched again."""
        self.forms, self._numbers, self.cache = [], None, None


class Reader:
    """A cursor vector over the log, and the sink that its messages go to.

    cursors[p]: the next lsn wanted of partition p, while not live there
    sink: None while the client is disconnected; key: of its session or shared group
    number: unique among the readers of one session; start: of a replay whose lsns are being searched
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
        self.sink: DeliverySink | None = None
        self.share: SharedMembership | None = None
        self.turns: ReaderTurns[Reader] | None = None  # of its session; None: it needs no turn to catch up
        self.closed = False
        self.start: tuple[str, int] | None = None
        self.redelivered_below: list[int] | None = None
        self.waiting = 0  # bit p: a cold read of partition p is under way
        self.refused = 0  # bit p: its sink has refused records of partition p; a `Blocked` follows
        # So that a record that is delivered again after a refusal is counted once:
        self.counted: set[tuple[int, int]] | None = None  # (partition, lsn) omitted once, and to come again
        self.denied_below: dict[int, int] | None = None  # partition -> lsn: denied records below are counted
        self.skipped: dict[int, tuple[int, int]] | None = None  # partition -> the last range that it lost

    def is_live(self, partition: int) -> bool:
        return self in self.group.live[partition]

    def caught_up(self) -> bool:
        return all(self in live for live in self.group.live)
