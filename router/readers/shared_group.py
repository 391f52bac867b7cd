"""A shared subscription: one cursor vector for a group of sessions, each message to one of them. MQTT 5.0, 4.8.2.

A member that does not accept a message returns it, and it goes to another."""
# compiled: hot

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from commitlog import Chunk
from router.readers.range_queue import Range, RangeQueue
from router.readers.reader import Reader

RECENT_MAX = 4096
LSN_MAX = 1 << 62


NO_RANGES: list[Range] = []
"""Of all members that have none. It is never added to: `Member.give`."""


def without(ranges: Iterable[Range], taken: list[Range]) -> list[Range]:
    """The ranges without those in `taken`."""
    left = list(ranges)
    for where, first, stop in taken:
        kept: list[Range] = []
        for partition, a, b in left:
            if partition != where or stop <= a or b <= first:
                kept.append((partition, a, b))
                continue
            if a < first:
                kept.append((partition, a, first))
            if stop < b:
                kept.append((partition, stop, b))
        left = kept
    return left


def adjoined(ranges: Iterable[Range]) -> list[Range]:
    """The same lsns in as few ranges as possible."""
    found: list[Range] = []
    for partition, first, stop in sorted(ranges):
        if found and found[-1][0] == partition and first <= found[-1][2]:
            found[-1] = (partition, found[-1][1], max(found[-1][2], stop))
        else:
            found.append((partition, first, stop))
    return found


NONE_RECENT = RangeQueue(0)
"""Of all groups whose home is here."""


class Participant(Protocol):
    """A session, or another shard on behalf of sessions of its own."""

    key: str
    is_shard: bool


class Member:
    """A member of a shared group, and the ranges assigned to it in this step and the one before.

    What its sink refuses comes back as commands of the next step."""

    __slots__ = ("before", "given", "outstanding", "parked", "reader", "share", "subscriber", "weight")

    def __init__(self, subscriber: Participant, reader: Reader, share: SharedGroup) -> None:
        self.subscriber = subscriber
        self.share = share
        self.reader = reader
        self.parked = False
        self.given = NO_RANGES
        self.before = NO_RANGES
        # Of another shard: how many members it has, and the ranges assigned to it that are not delivered yet.
        self.weight = 1
        self.outstanding = NO_RANGES

    def give(self, assigned: Range) -> None:
        """These are assigned to it in this step; to another shard, until it says that they are delivered."""
        if self.subscriber.is_shard:
            self.outstanding = self.outstanding or []
            self.outstanding.append(assigned)
        else:
            self.given = self.given or []
            self.given.append(assigned)

    def finish(self, ranges: list[Range]) -> None:
        """These are not outstanding any more."""
        self.outstanding = without(self.outstanding, ranges)

    def next_step(self) -> bool:
        """A step begins; returns whether ranges of the last one are still unconfirmed."""
        self.before, self.given = self.given, NO_RANGES
        return bool(self.before)


NOBODY: Mapping[Reader, Member] = MappingProxyType({})
"""Of all groups that no member has just left."""


class SharedGroup:
    """The readers of `$share/<name>/<filter>`.

    is_here: its home is this shard; else it assigns only the ranges that its home sends, in `returned`
    is_held: nothing is assigned: what members in other shards have had is not known of all of them"""

    __slots__ = (
        "departed", "is_held", "is_here", "is_parked", "key", "members", "reader", "recent", "returned", "topic_filter",
        "turn",
    )  # fmt: skip

    def __init__(self, key: str, topic_filter: str, reader: Reader, *, is_here: bool = True) -> None:
        self.is_here = is_here
        self.is_held = False
        self.is_parked = False  # its home was told that no member has capacity
        # Ranges lately delivered to members, which the home may ask for.
        self.recent = NONE_RECENT if is_here else RangeQueue(RECENT_MAX)
        self.key = key
        self.topic_filter = topic_filter
        self.reader = reader
        self.members: dict[Participant, Member] = {}
        # Former members whose last ranges may still be returned: `depart`.
        self.departed: Mapping[Reader, Member] = NOBODY
        self.returned = RangeQueue()
        self.turn = 0

    def add(self, participant: Participant, reader: Reader) -> Member:
        """A new member, whose messages go to the sink of this reader."""
        member = self.members[participant] = Member(participant, reader, self)
        reader.share = self
        return member

    def depart(self, member: Member) -> None:
        """It has left, and what it was assigned in the last step may still be returned."""
        self.departed = {**self.departed, member.reader: member}

    def forget_departed(self, member: Member) -> None:
        """Nothing of it can be returned any more."""
        if member.reader in self.departed:
            self.departed = {reader: each for reader, each in self.departed.items() if each is not member} or NOBODY

    def readers(self) -> list[Reader]:
        return [member.reader for member in self.members.values()]

    def available(self) -> list[Member]:
        """Members with capacity, once per weight, starting with the one whose turn it is."""
        if self.is_held:
            return []
        available = [
            m for m in self.members.values() if m.reader.sink is not None and not m.parked for _ in range(m.weight)
        ]
        if len(available) > 1:
            self.turn = self.turn % len(available)
            available = available[self.turn :] + available[: self.turn]
        return available

    def split(
        self, partition: int, chunk: Chunk, rows: Sequence[int], first: int, stop: int
    ) -> list[tuple[Member, int, int]]:
        """Assign rows of a chunk, all of first..stop that are wanted, in even, contiguous parts.

        returns: (member, first row, row after the last); none when no member has capacity"""
        available = self.available()
        if not available or not rows:
            return []
        parts = min(len(available), len(rows))
        self.turn += len(rows) % len(available) if len(rows) >= len(available) else parts
        size, rest = divmod(len(rows), parts)
        given = []
        at = 0
        begin = first
        for index in range(parts):
            n = size + (1 if index < rest else 0)
            part_first, part_stop = rows[at], rows[at + n - 1] + 1
            at += n
            # With the unwanted rows before it, and after the last one: the parts cover first..stop.
            end = part_stop if index + 1 < parts else stop
            member = available[index]
            whole = (partition, chunk.base_lsn + begin, chunk.base_lsn + end)
            member.give(whole)
            if member.subscriber.is_shard:
                given.append((member, begin, end))
            else:
                given.append((member, part_first, part_stop))
            begin = end
        return given

    def skip(self, ranges: list[Range], shard: Participant) -> None:
        """Members of another shard have these: do not assign them again."""
        member = self.members.get(shard)
        if member is not None:
            member.finish(ranges)
        self.returned.replace(without(self.returned, ranges))
        for index, at in enumerate(self.reader.cursors):
            if self.reader.is_live(index):
                continue
            for _, first, stop in sorted(r for r in ranges if r[0] == index):
                if stop > at:
                    if at < first:
                        self.returned.append((index, at, first))
                    at = stop
            self.reader.cursors[index] = at

    def is_behind(self, partition: int, lsn: int) -> bool:
        """Whether the group catches up from a cursor above an lsn: everything below was assigned, or came back."""
        return lsn < self.reader.cursors[partition] and not self.reader.is_live(partition)

    def truncate(self, partition: int, next_lsn: int) -> list[Range]:
        """Forget ranges of a partition from `next_lsn` on: those lsns are, or will be, other records'.

        returns: what of it was assigned to this shard"""
        gone = [(partition, next_lsn, LSN_MAX)]
        assigned: list[Range] = list(self.returned)
        for member in (*self.members.values(), *self.departed.values()):
            assigned += [*member.given, *member.before]
        dropped = without(assigned, without(assigned, gone))
        self.returned.replace(without(self.returned, gone))
        self.recent.replace(without(self.recent, gone))
        for member in (*self.members.values(), *self.departed.values()):
            member.outstanding = without(member.outstanding, gone)
            member.given = without(member.given, gone)
            member.before = without(member.before, gone)
        self.reader.cursors[partition] = min(self.reader.cursors[partition], next_lsn)
        return dropped

    def give_back(self, member: Member, partition: int, lsn: int) -> None:
        """Requeue the rest, from `lsn` on, of the assigned range that contains it. Each refused range
        is returned on its own, in the step after its assignment."""
        member.parked = True
        for at, (where, first, stop) in enumerate(member.before):
            if where == partition and first <= lsn < stop:
                self.returned.append((where, lsn, stop))
                member.before[at] = (where, first, lsn)
                return
