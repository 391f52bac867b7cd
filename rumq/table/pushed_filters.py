"""Conditions of a query on topic, partition, lsn and ts that a reader applies itself. docs/guides/spark.md, "Read"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.topics import check_topic_filter

LSN_END = 1 << 63
US_END = 1 << 62
TESTS: dict[str, Callable[[str, Any], bool]] = {
    "EqualTo": lambda word, value: word == value,
    "EqualNullSafe": lambda word, value: word == value,
    "In": lambda word, value: word in value,
    "StringStartsWith": lambda word, value: word.startswith(value),
    "StringEndsWith": lambda word, value: word.endswith(value),
    "StringContains": lambda word, value: value in word,
    # By code points, which is the order of UTF-8 that Spark compares by.
    "GreaterThan": lambda word, value: word > value,
    "GreaterThanOrEqual": lambda word, value: word >= value,
    "LessThan": lambda word, value: word < value,
    "LessThanOrEqual": lambda word, value: word <= value,
}


class Condition(NamedTuple):
    """A test of a text. kind: a name of `TESTS`"""

    kind: str
    value: Any
    negated: bool

    def holds(self, word: str) -> bool:
        return TESTS[self.kind](word, self.value) != self.negated

    def maybe_values(self) -> list[str] | None:
        """All texts that pass, if they can be listed."""
        if self.negated or self.kind not in ("EqualTo", "EqualNullSafe", "In"):
            return None
        return list(self.value) if self.kind == "In" else [self.value]


@dataclass(frozen=True)
class PushedFilters:
    """first_lsn..end_lsn and first_us..end_us (µs since 1970): ranges with exclusive end."""

    topics: tuple[Condition, ...] = ()
    partitions: tuple[Condition, ...] = ()
    first_lsn: int = 0
    end_lsn: int = LSN_END
    first_us: int = -US_END
    end_us: int = US_END

    @property
    def times(self) -> tuple[int, int] | None:
        return None if (self.first_us, self.end_us) == (-US_END, US_END) else (self.first_us, self.end_us)

    def reads(self, partition: str) -> bool:
        return all(test.holds(partition) for test in self.partitions)

    def wants(self, other: Callable[[str], bool] | None) -> Callable[[str], bool] | None:
        """A test of wanted topics, combined with an existing one; None: all are."""
        if not self.topics:
            return other
        tests = self.topics
        return lambda topic: (other is None or other(topic)) and all(test.holds(topic) for test in tests)

    def maybe_topics(self) -> list[str] | None:
        """All topics that may be wanted; None if they cannot be listed."""
        lists: list[list[str]] = [found for test in self.topics if (found := test.maybe_values()) is not None]
        if not lists:
            return None
        return sorted(word for word in set(lists[0]) if all(test.holds(word) for test in self.topics))

    def ranges(self, others: list[tuple[str, str]] | None) -> list[tuple[str, str]] | None:
        """Bounds of the topics that may be wanted: (from, below). others: existing bounds"""
        if (words := self.maybe_topics()) is not None and words:
            return [(word, word + "\0") for word in words]
        starts = [test.value for test in self.topics if test.kind == "StringStartsWith" and not test.negated]
        longest = max(starts, key=len, default="")
        if not longest or ord(longest[-1]) >= 0xD7FF:
            return others
        return [(longest, longest[:-1] + chr(ord(longest[-1]) + 1))]

    def filters(self, others: tuple[str, ...], wants: Callable[[str], bool] | None) -> tuple[str, ...] | None:
        """MQTT filters that cover all wanted topics; None: no topic can be. others, wants: existing filters and test"""
        if (words := self.maybe_topics()) is not None:
            found = tuple(word for word in words if is_filter(word) and (wants is None or wants(word)))
            return found or None
        starts = [test.value for test in self.topics if test.kind == "StringStartsWith" and not test.negated]
        above = max(starts, key=len, default="").rpartition("/")[0]
        if others or not above or "+" in above or "#" in above or not is_filter(f"{above}/#"):
            return others
        return (f"{above}/#",)


def is_filter(word: str) -> bool:
    try:
        check_topic_filter(word)
    except TopicFilterInvalid:
        return False
    return True
