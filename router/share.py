"""Shared subscriptions: one cursor vector for a group of sessions, each message to one of them. MQTT 5.0, 4.8.2.

Knows no socket and no credit: a member that could not take a message gives it back, and it goes to another."""

from __future__ import annotations

from collections import deque
from typing import Any

from router.readers import Group, Reader, Wants
from router.subscriber import Subscriber
from router.subscription import Subscription


class Member:
    """A session's part in a share: the form it wants, and what it was given in this step and the one before.

    What it could not take of a step comes back as commands of the next one."""

    __slots__ = ("before", "given", "parked", "reader", "subscriber")

    def __init__(self, subscriber: Subscriber, reader: Reader) -> None:
        self.subscriber = subscriber
        self.reader = reader
        self.parked = False
        self.given: list[tuple[int, int, int]] = []  # (partition, first lsn, next lsn)
        self.before: list[tuple[int, int, int]] = []

    def next_step(self) -> bool:
        """A step begins; returns whether the member has to be told of the next one as well."""
        self.before, self.given = self.given, []
        return bool(self.before)


class Share:
    """The readers of `$share/<name>/<filter>`."""

    __slots__ = ("key", "members", "reader", "returned", "topic_filter", "turn")

    def __init__(self, key: str, topic_filter: str, reader: Reader) -> None:
        self.key = key
        self.topic_filter = topic_filter
        self.reader = reader
        self.members: dict[Subscriber, Member] = {}
        self.returned: deque[tuple[int, int, int]] = deque()
        self.turn = 0

    def join(
        self, subscriber: Subscriber, subscription: Subscription, number: int, partitions: int
    ) -> Member:
        """Add a session, or change how it wants its messages."""
        wants = Wants(frozenset([subscription]), False, (subscriber.shape, subscriber.key))
        # Not interned: nothing is routed to a member but what the share hands it.
        group = Group(wants, partitions)
        group.form_number([subscription.topic_filter])
        member = self.members.get(subscriber)
        if member is None:
            member = Member(subscriber, Reader(number, group, [0] * partitions, self.key))
            self.members[subscriber] = member
            member.reader.share = self
        else:
            member.reader.group = group
        member.reader.sink = subscriber.sink
        return member

    def able(self) -> list[Member]:
        """The members that can take messages now, beginning with the one whose turn it is."""
        able = [m for m in self.members.values() if m.reader.sink is not None and not m.parked]
        if len(able) > 1:
            self.turn = self.turn % len(able)
            able = able[self.turn :] + able[: self.turn]
        return able

    def split(self, partition: int, chunk: Any, rows: list[int]) -> list[tuple[Member, int, int]]:
        """Hand out rows of a chunk in even, contiguous parts: (member, first row, row after the last)."""
        able = self.able()
        if not able or not rows:
            return []
        parts = min(len(able), len(rows))
        self.turn += len(rows) % len(able) if len(rows) >= len(able) else parts
        size, rest = divmod(len(rows), parts)
        given = []
        at = 0
        for index in range(parts):
            n = size + (1 if index < rest else 0)
            first, stop = rows[at], rows[at + n - 1] + 1
            at += n
            able[index].given.append((partition, chunk.base_lsn + first, chunk.base_lsn + stop))
            given.append((able[index], first, stop))
        return given

    def give_back(self, member: Member, partition: int, lsn: int) -> None:
        """Of the part that holds `lsn` a member took nothing from there on. Each part that it could not take whole is
        given back by itself, in the step after the one in which it was given."""
        member.parked = True
        for at, (where, first, stop) in enumerate(member.before):
            if where == partition and first <= lsn < stop:
                self.returned.append((where, lsn, stop))
                member.before[at] = (where, first, lsn)
                return
