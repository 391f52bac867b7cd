"""A session's readers, and which of its filters belongs to which reader.

Ordinary subscriptions share one reader, so that a message that several of them match is delivered once. A replay has
a reader of its own, and so has a subscription that is added while the main reader is behind: it starts at the end, and
merges into the main reader once that has caught up."""

from __future__ import annotations

from collections.abc import Hashable
from types import MappingProxyType
from typing import Any, TypeVar, cast

from router.readers.reader import DeliverySink, Reader
from router.readers.reader_turns import ReaderTurns
from router.readers.shared_group import SharedGroup
from router.readers.slots import READERS_MAX
from router.readers.subscription import Subscription, TopicPermit

V = TypeVar("V")


NONE: dict[str, Any] = cast(dict[str, Any], MappingProxyType({}))
"""Of all subscribers that have nothing of a kind. It cannot be added to: see `own`."""


def own(known: dict[str, V]) -> dict[str, V]:
    """The same, to be added to."""
    return {} if known is NONE else known


class Subscriber:
    __slots__ = (
        "is_shard", "key", "last_number", "late", "main", "main_subscriptions", "pending_retained", "personal",
        "replays", "shape", "shape_changed", "shares", "sink", "turns",
    )  # fmt: skip

    def __init__(self, key: str, shape: Hashable, *, personal: bool = False, is_shard: bool = False) -> None:
        """key: of its session; shape: see `reader.GroupKey`; is_shard: another shard, for its own readers

        personal: its bytes differ from all others' (topic aliases), so it shares no group"""
        self.key = key
        self.shape = shape
        self.personal = personal
        self.is_shard = is_shard
        self.shape_changed = False  # the client reconnected with another shape
        self.sink: DeliverySink | None = None
        self.last_number = 0
        self.main: Reader | None = None
        # Most sessions have none of these: `NONE` until there is one.
        self.main_subscriptions: dict[str, Subscription] = NONE
        self.late: dict[str, Reader] = NONE
        self.replays: dict[str, Reader] = NONE
        self.shares: dict[str, SharedGroup] = NONE
        self.turns: ReaderTurns[Reader] | None = None  # of `late` and `replays`
        # Requests for retained messages from before delivery began: subscription, and below which lsns.
        self.pending_retained: dict[str, tuple[Subscription, list[int]]] = NONE

    def add_reader(self, asked: str, reader: Reader, *, is_replay: bool) -> None:
        """Add a reader of `late` or `replays`, which takes turns with the others."""
        if self.turns is None:
            self.turns = ReaderTurns()
        reader.turns = self.turns
        if is_replay:
            self.replays = own(self.replays)
            self.replays[asked] = reader
        else:
            self.late = own(self.late)
            self.late[asked] = reader

    def add_share(self, asked: str, share: SharedGroup) -> None:
        self.shares = own(self.shares)
        self.shares[asked] = share

    def defer_retained(self, subscription: Subscription, below: list[int]) -> None:
        """Retained messages for a subscription are wanted once delivery begins. below: these lsns, the first time"""
        asked = subscription.topic_filter
        self.pending_retained = own(self.pending_retained)
        if asked in self.pending_retained:  # what came since then waits in the log
            below = self.pending_retained[asked][1]
        self.pending_retained[asked] = subscription, below

    def readers(self) -> list[Reader]:
        """Every reader of this session, without shared groups."""
        own = [self.main] if self.main is not None else []
        return [*own, *self.late.values(), *self.replays.values()]

    def next_number(self) -> int:
        """A number for a new reader; reused after 33 million readers."""
        self.last_number = self.last_number % READERS_MAX + 1
        return self.last_number

    def filters(self) -> list[str]:
        """Every filter, as the client wrote it."""
        return [*self.main_subscriptions, *self.late, *self.replays, *self.shares]

    def permit_of(self, asked: str) -> TopicPermit | None:
        """What an ordinary subscription may receive now."""
        known = self.main_subscriptions.get(asked)
        if known is None and asked in self.late:
            (known,) = self.late[asked].group.subscriptions
        return None if known is None else known.permit

    def plain_filters(self) -> list[str]:
        """Every filter, without prefixes such as $share or $log."""
        readers = [*self.late.values(), *self.replays.values()]
        single = [s.topic_filter for reader in readers for s in reader.group.subscriptions]
        return [*self.main_subscriptions, *single, *(share.topic_filter for share in self.shares.values())]

    def has(self, asked: str) -> bool:
        return asked in self.main_subscriptions or asked in self.late or asked in self.replays or asked in self.shares


class NotSubscribed(Subscriber):
    """What is set here would be every idle client's."""

    __slots__ = ("_is_made",)

    _is_made: bool

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, "_is_made"):
            raise AttributeError(f"{name} of a session that has not subscribed: make it a subscriber first")
        super().__setattr__(name, value)


NOT_SUBSCRIBED = NotSubscribed("", None)
"""Of all sessions that have never subscribed. The router is told nothing of it."""
NOT_SUBSCRIBED._is_made = True
