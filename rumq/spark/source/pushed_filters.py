"""Conditions of a query that its source takes over: on topic, partition, lsn and ts. docs/spark.md, "Read".

What is taken over is applied to every row: Spark does not look again. What is not is left to it. Knows no session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.topics import check_topic_filter

LSN_END = 1 << 63
US_END = 1 << 62
MEANINGS = {"offset": "lsn", "timestamp": "ts"}  # of schemaStyle kafka
TEXTS = ("topic", "partition")
NUMBERS = ("lsn", "ts")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
    """Of a text. kind: a name of `TESTS`"""

    kind: str
    value: Any
    negated: bool

    def holds(self, word: str) -> bool:
        return TESTS[self.kind](word, self.value) != self.negated

    def maybe_values(self) -> list[str] | None:
        """All texts of which it is true, where these can be listed."""
        if self.negated or self.kind not in ("EqualTo", "EqualNullSafe", "In"):
            return None
        return list(self.value) if self.kind == "In" else [self.value]


@dataclass(frozen=True)
class Pushed:
    """first_lsn..end_lsn and first_us..end_us (µs since 1970) are ranges whose end is not in them."""

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
        """What says of a topic whether it is wanted, with what says so already; None: all are."""
        if not self.topics:
            return other
        tests = self.topics
        return lambda topic: (other is None or other(topic)) and all(test.holds(topic) for test in tests)

    def maybe_topics(self) -> list[str] | None:
        """All topics that may be wanted; None where they cannot be listed."""
        lists: list[list[str]] = [found for test in self.topics if (found := test.maybe_values()) is not None]
        if not lists:
            return None
        return sorted(word for word in set(lists[0]) if all(test.holds(word) for test in self.topics))

    def ranges(self, others: list[tuple[str, str]] | None) -> list[tuple[str, str]] | None:
        """Bounds of the topics that may be wanted: (from, below). others: those that are known already"""
        if (words := self.maybe_topics()) is not None and words:
            return [(word, word + "\0") for word in words]
        starts = [test.value for test in self.topics if test.kind == "StringStartsWith" and not test.negated]
        longest = max(starts, key=len, default="")
        if not longest or ord(longest[-1]) >= 0xD7FF:
            return others
        return [(longest, longest[:-1] + chr(ord(longest[-1]) + 1))]

    def filters(self, others: tuple[str, ...], wants: Callable[[str], bool] | None) -> tuple[str, ...] | None:
        """MQTT filters that cover what may be wanted; None: nothing can be. others, wants: what is asked for already"""
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


def push(filters: Iterable[Any]) -> tuple[Pushed, list[Any]]:
    """What is taken over of filters of Spark (pyspark.sql.datasource.Filter), which all are to hold, and the others."""
    pushed, left = Pushed(), []
    for each in filters:
        more = taken_over(pushed, each)
        if more is None:
            left.append(each)
        else:
            pushed = more
    return pushed, left


def taken_over(pushed: Pushed, condition: Any) -> Pushed | None:
    kind, negated = type(condition).__name__, False
    if kind == "Not":
        condition = condition.child
        kind, negated = type(condition).__name__, True
    path = condition.attribute
    column = MEANINGS.get(path[0], path[0]) if len(path) == 1 else ""
    if column not in (*TEXTS, *NUMBERS):
        return None
    if kind in ("IsNotNull", "IsNull"):  # none of these columns ever is
        return pushed if (kind == "IsNotNull") != negated else None
    if column in NUMBERS:
        return None if negated else narrowed(pushed, column, kind, condition.value)
    words = condition.value if kind == "In" else [condition.value]
    if kind not in TESTS or not all(isinstance(word, str) for word in words):
        return None
    test = Condition(kind, frozenset(words) if kind == "In" else condition.value, negated)
    if column == "topic":
        return replace(pushed, topics=(*pushed.topics, test))
    return replace(pushed, partitions=(*pushed.partitions, test))


def narrowed(pushed: Pushed, column: str, kind: str, value: Any) -> Pushed | None:
    number = number_of(column, value)
    if number is None:
        return None
    first, end = ("first_lsn", "end_lsn") if column == "lsn" else ("first_us", "end_us")
    least, above = getattr(pushed, first), getattr(pushed, end)
    match kind:
        case "EqualTo" | "EqualNullSafe":
            least, above = max(least, number), min(above, number + 1)
        case "GreaterThan":
            least = max(least, number + 1)
        case "GreaterThanOrEqual":
            least = max(least, number)
        case "LessThan":
            above = min(above, number)
        case "LessThanOrEqual":
            above = min(above, number + 1)
        case _:
            return None
    return replace(pushed, **{first: least, end: above})


def number_of(column: str, value: Any) -> int | None:
    if column == "lsn":
        return value if type(value) is int else None
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - EPOCH) // timedelta(microseconds=1)
