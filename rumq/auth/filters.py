"""Relations of topic filters: one covers another, two overlap. MQTT 5.0, 4.7."""

from __future__ import annotations

from collections.abc import Iterable

from rumq.mqtt.topics import filters_overlap, matches


def covers(wide: str, narrow: str) -> bool:
    """Whether every topic that `narrow` matches is matched by `wide`."""
    if wide == narrow:
        return True
    if narrow.startswith("$") and wide.startswith(("#", "+")):
        return False
    outer, inner = wide.split("/"), narrow.split("/")
    for at, level in enumerate(outer):
        if level == "#":
            return at <= len(inner)
        if at >= len(inner) or inner[at] == "#":
            return False
        if level != "+" and level != inner[at]:
            return False
    return len(inner) == len(outer)


def overlap(one: str, other: str) -> bool:
    """Whether some topic is matched by both."""
    for first, second in ((one, other), (other, one)):
        if first.startswith("$") and second.startswith(("#", "+")):
            return False
    return filters_overlap(one, other)


class FilterSet:
    """Filters indexed by their first level, so that `match` compares only those that could match."""

    def __init__(self, filters: Iterable[str]) -> None:
        self.all = tuple(dict.fromkeys(filters))
        self._exact = frozenset(each for each in self.all if "+" not in each and "#" not in each)
        self._by_first: dict[str, list[str]] = {}
        for each in self.all:
            if each not in self._exact:
                self._by_first.setdefault(each.partition("/")[0], []).append(each)

    def __bool__(self) -> bool:
        return bool(self.all)

    def match(self, topic: str) -> bool:
        """Whether one of the filters matches the topic."""
        if topic in self._exact:
            return True
        for first in (topic.partition("/")[0], "+", "#"):
            for each in self._by_first.get(first, ()):
                if matches(each, topic):
                    return True
        return False

    def cover(self, topic_filter: str) -> bool:
        """Whether a single one of the filters covers this one."""
        return any(covers(each, topic_filter) for each in self.all)

    def overlap(self, topic_filter: str) -> bool:
        return any(overlap(each, topic_filter) for each in self.all)
