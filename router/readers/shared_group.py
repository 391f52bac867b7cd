"""A shared subscription: one cursor vector for a group of sessions, each message to one of them. MQTT 5.0, 4.8.2.

A member that does not accept a message returns it, and it goes to another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from commitlog import Chunk
from router.readers.reader import Reader

Range = tuple[int, int, int]  # (partition, first lsn, next lsn)
RECENT_MAX = 4096
LSN_MAX = 1 << 62


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
        self.given: list[Range] = []
        self.before: list[Range] = []
        # Of another shard: how many members it has, and the ranges assigned to it that are not delivered yet.
        self.weight = 1
        self.outstanding: list[Range] = []

    def finish(self, ranges: list[Range]) -> None:
        """These are not outstanding any more."""
        self.outstanding = without(self.outstanding, ranges)

    def next_step(self) -> bool:
        """A step begins; returns whether ranges of the last one are still unconfirmed."""
        self.before, self.given = self.given, []
        return bool(self.before)


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
        self.recent: deque[Range] = deque(maxlen=RECENT_MAX)  # ranges lately delivered to members
        self.key = key
        self.topic_filter = topic_filter
        self.reader = reader
        self.members: dict[Participant, Member] = {}
        self.departed: dict[Reader, Member] = {}  # former members whose last ranges may still be returned
        self.returned: deque[Range] = deque()
        self.turn = 0

    def add(self, participant: Participant, reader: Reader) -> Member:
        """A new member, whose messages go to the sink of this reader."""
        member = self.members[participant] = Member(participant, reader, self)
        reader.share = self
        return member

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
            if member.subscriber.is_shard:
                member.outstanding.append(whole)
                given.append((member, begin, end))
            else:
                member.given.append(whole)
                given.append((member, part_first, part_stop))
            begin = end
        return given

    def skip(self, ranges: list[Range], shard: Participant) -> None:
        """Members of another shard have these: do not assign them again."""
        member = self.members.get(shard)
        if member is not None:
            member.finish(ranges)
        self.returned = deque(without(self.returned, ranges))
        for index, at in enumerate(self.reader.cursors):
            if self.reader.is_live(index):
                continue
            for _, first, stop in sorted(r for r in ranges if r[0] == index):
                if stop > at:
                    if at < first:
                        self.returned.append((index, at, first))
                    at = stop
            self.reader.cursors[index] = at

    def truncate(self, partition: int, next_lsn: int) -> None:
        """Forget ranges of a partition from `next_lsn` on: those lsns will be reused."""
        gone = [(partition, next_lsn, LSN_MAX)]
        self.returned = deque(without(self.returned, gone))
        self.recent = deque(without(self.recent, gone), maxlen=RECENT_MAX)
        for member in (*self.members.values(), *self.departed.values()):
            member.outstanding = without(member.outstanding, gone)
            member.given = without(member.given, gone)
            member.before = without(member.before, gone)
        self.reader.cursors[partition] = min(self.reader.cursors[partition], next_lsn)

    def give_back(self, member: Member, partition: int, lsn: int) -> None:
        """Requeue the rest, from `lsn` on, of the assigned range that contains it. Each refused range
        is returned on its own, in the step after its assignment."""
        member.parked = True
        for at, (where, first, stop) in enumerate(member.before):
            if where == partition and first <= lsn < stop:
                self.returned.append((where, lsn, stop))
                member.before[at] = (where, first, lsn)
                return
