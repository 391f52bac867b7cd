"""The committed offsets of all groups, in memory, and entries that are on their way to their file, within bounds
together. No files: `commit_file` keeps them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from rumq.kafka.groups.commit_entries import Commit, Entry, Forget
from rumq.kafka.groups.messages import KafkaGroupKey

METADATA_BYTES_MAX = 4096  # of one offset, as Kafka's offset.metadata.max.bytes
ENTRY_BYTES = 800  # of one offset in memory beside its texts, in a group of its own; in a large group 500
WIDE_BYTES, WIDE_CHARACTER_BYTES = 50, 8  # more for a text that is not ASCII: its UTF-8 is kept with it
ON_THE_WAY_RATIO = 8  # commits on their way have an eighth of the bound, however full the rest is
Place = tuple[str, int]  # topic, partition


class CommittedOffsets:
    """bytes_max: of all groups; half of them of a user. size: of what is in the file; on_the_way: of what is not yet"""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._groups: dict[KafkaGroupKey, dict[Place, Commit]] = {}
        self._sizes = Counter[str]()
        self._ways, self._growths = Counter[str](), Counter[str]()  # on the way; by how much that is more than before
        self.size = self.on_the_way = self._growing = 0

    def of(self, key: KafkaGroupKey) -> dict[Place, Commit]:
        return self._groups.get(key, {})

    def names(self, user: str) -> list[str]:
        return [key.group for key in self._groups if key.user == user]

    @property
    def groups(self) -> list[KafkaGroupKey]:
        return list(self._groups)

    def all(self) -> Iterator[Commit]:
        for group in self._groups.values():
            yield from group.values()

    def has_room(self, key: KafkaGroupKey, entries: Sequence[Commit]) -> bool:
        """Whether these have room beside what is in the file."""
        return self._has_room(key.user, self._growth(key, entries))

    def may_go(self, key: KafkaGroupKey, entries: Sequence[Entry]) -> bool:
        """Whether these can go to the file now; later they can. Those of one request can if no others are on their way,
        so that a group that is as large as it may be goes on."""
        if not self.on_the_way:
            return True
        more, user = sum(map(size_of, entries)), key.user

        def has_way(held: int, size: int, bytes_max: int) -> bool:
            return held + more <= max(bytes_max - size, bytes_max // ON_THE_WAY_RATIO)

        return (
            has_way(self.on_the_way, self.size, self.bytes_max)
            and has_way(self._ways[user], self._sizes[user], self._share(user))
            and self._has_room(user, self._growth(key, entries), self._growths[user], self._growing)
        )

    def begin_way(self, key: KafkaGroupKey, entries: Sequence[Entry]) -> Callable[[], None]:
        """They are counted, until what is returned is called: they are taken, or could not be written."""
        size, growth = sum(map(size_of, entries)), self._growth(key, entries)
        self._go(key.user, size, growth)
        return lambda: self._go(key.user, -size, -growth)

    def take(self, entries: Iterable[Entry]) -> None:
        for each in entries:
            key = KafkaGroupKey(each.user, each.group)
            group = self._groups.setdefault(key, {})
            old = group.pop((each.topic, each.partition), None)
            self._count(each.user, -size_of(old) if old is not None else 0)
            if isinstance(each, Commit):
                group[each.topic, each.partition] = each
                self._count(each.user, size_of(each))
            if not group:
                del self._groups[key]

    def forgotten(self, key: KafkaGroupKey, before_ms: int | None = None) -> list[Forget]:
        """What forgets a group's offsets. before_ms: those that were committed before; None: all"""
        return [
            Forget(key.user, key.group, *place)
            for place, commit in self.of(key).items()
            if before_ms is None or commit.at_ms < before_ms
        ]

    def renewed(self, key: KafkaGroupKey, before_ms: int, now_ms: int) -> list[Commit]:
        """What was committed before, as if it were committed now."""
        return [replace(each, at_ms=now_ms) for each in self.of(key).values() if each.at_ms < before_ms]

    def _growth(self, key: KafkaGroupKey, entries: Iterable[Entry]) -> int:
        """By how many bytes these are more than what they replace."""
        known = self.of(key)
        more = 0
        for each in entries:
            if isinstance(each, Commit):
                old = known.get((each.topic, each.partition))
                more += max(0, size_of(each) - (0 if old is None else size_of(old)))
        return more

    def _has_room(self, user: str, more: int, users: int = 0, everybodys: int = 0) -> bool:
        """users, everybodys: bytes by which it grows already"""
        is_in_share = self._sizes[user] + users + more <= self._share(user)
        return more == 0 or (is_in_share and self.size + everybodys + more <= self.bytes_max)

    def _go(self, user: str, size: int, growth: int) -> None:
        self.on_the_way += size
        self._growing += growth
        for counted, more in ((self._ways, size), (self._growths, growth)):
            counted[user] += more
            if not counted[user]:
                del counted[user]

    def _share(self, user: str) -> int:
        return self.bytes_max // 2 if user else self.bytes_max

    def _count(self, user: str, size: int) -> None:
        self.size += size
        self._sizes[user] += size
        if not self._sizes[user]:
            del self._sizes[user]


def size_of(entry: Entry) -> int:
    """Bytes that it takes in memory, about: as measured."""
    texts = (entry.user, entry.group, entry.topic, entry.metadata if isinstance(entry, Commit) else "")
    return ENTRY_BYTES + sum(
        len(each) if each.isascii() else WIDE_BYTES + WIDE_CHARACTER_BYTES * len(each) for each in texts
    )
