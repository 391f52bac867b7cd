"""MQTT topic filters as ranges of topics and as conditions of Spark, so that Parquet is read only where they may be.

MQTT 5.0, 4.7. What they cover is what `rumq.mqtt.topics.matches` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rumq.table.options import check_filter

SPECIAL = frozenset("\\.[]{}()<>*+-=!?^$|&#~ ")
AFTER_SLASH = "0"  # the character behind "/"


def topic_range(topic_filter: str) -> tuple[str, str] | None:
    """(from this topic on, below that) of all topics that a filter covers; None: they may be anywhere."""
    literal = literal_levels(topic_filter)
    if not literal:
        return None
    path = "/".join(literal)
    if path == topic_filter:
        return path, path + "\0"  # there is no topic in between
    # `a/#` covers `a` too; `a/+` covers what begins with `a/`.
    return path, path + AFTER_SLASH


def topic_ranges(topic_filters: Sequence[str]) -> list[tuple[str, str]] | None:
    """Of any of some filters; None: they may be anywhere."""
    found = [topic_range(each) for each in topic_filters]
    ranges = [each for each in found if each is not None]
    return ranges if found and len(ranges) == len(found) else None


def literal_levels(topic_filter: str) -> list[str]:
    """The levels before the first wildcard."""
    levels = topic_filter.split("/")
    return levels[: next((n for n, level in enumerate(levels) if level in ("#", "+")), len(levels))]


def mqtt_filter_to_predicate(topic_filter: str, topic: Any = "topic") -> Any:
    """A condition (pyspark Column) that is true where an MQTT topic filter covers the topic.

    topic: a column, or its name. raises: BadOption when it is no topic filter"""
    from pyspark.sql import functions as f

    check_filter("topics", topic_filter)
    column = f.col(topic) if isinstance(topic, str) else topic
    levels, literal = topic_filter.split("/"), literal_levels(topic_filter)
    path = "/".join(literal)
    if len(literal) == len(levels):
        return column == path
    rest = levels[len(literal) :]
    if not literal:
        return ~column.startswith("$") if rest == ["#"] else column.rlike(regular(levels))
    # Bounds, not startswith: Parquet's statistics are held against both, and any reader knows them.
    below = (column >= f"{path}/") & (column < path + AFTER_SLASH)
    if rest == ["#"]:
        return (column == path) | below
    return below & column.rlike(regular(levels))


def regular(levels: Sequence[str]) -> str:
    """Java's regular expression for a whole topic."""
    parts = ["[^/]*" if level == "+" else quoted(level) for level in levels if level != "#"]
    begin = r"(?s)\A(?!\$)" if levels[0] in ("+", "#") else r"(?s)\A"
    return begin + "/".join(parts) + (r"(/.*)?\z" if levels[-1] == "#" else r"\z")


def quoted(word: str) -> str:
    return "".join(f"\\{letter}" if letter in SPECIAL else letter for letter in word)
