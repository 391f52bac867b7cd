"""The committed offsets of all groups, in memory, within bounds. No files: `commit_file` keeps them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from rumq.kafka.groups.commit_entries import Commit, Entry, Forget
from rumq.kafka.groups.messages import KafkaGroupKey

METADATA_BYTES_MAX = 4096  # of one offset, as Kafka's offset.metadata.max.bytes
ENTRY_BYTES = 200  # of one offset beside its texts
Place = tuple[str, int]  # topic, partition


class CommittedOffsets:
    """bytes_max: of all groups; half of them of a user"""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._groups: dict[KafkaGroupKey, dict[Place, Commit]] = {}
        self._sizes = Counter[str]()
        self.size = 0

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

    def has_room(self, key: KafkaGroupKey, entries: Iterable[Commit]) -> bool:
        known = self.of(key)
        more = sum(size_of(each) for each in entries if (each.topic, each.partition) not in known)
        more += sum(
            max(0, size_of(each) - size_of(known[each.topic, each.partition]))
            for each in entries
            if (each.topic, each.partition) in known
        )
        share = self.bytes_max // 2 if key.user else self.bytes_max
        return more == 0 or (self._sizes[key.user] + more <= share and self.size + more <= self.bytes_max)

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

    def _count(self, user: str, size: int) -> None:
        self.size += size
        self._sizes[user] += size
        if not self._sizes[user]:
            del self._sizes[user]


def size_of(commit: Commit) -> int:
    return ENTRY_BYTES + sum(len(each.encode()) for each in (commit.user, commit.group, commit.topic, commit.metadata))
