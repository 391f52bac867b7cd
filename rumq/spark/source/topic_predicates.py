"""MQTT topic filters as Spark conditions, with bounds for Parquet's statistics. MQTT 5.0, 4.7.

A condition is true for the topics that `rumq.mqtt.topics.matches` matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rumq.table.options import check_filter
from rumq.table.topic_ranges import AFTER_SLASH, literal_levels

if TYPE_CHECKING:
    from pyspark.sql import Column

SPECIAL = frozenset("\\.[]{}()<>*+-=!?^$|&#~ ")


def mqtt_filter_to_predicate(topic_filter: str, topic: Column | str = "topic") -> Column:
    """A condition that is true if an MQTT topic filter matches the topic.

    topic: a column, or its name. raises: BadOption for an invalid filter"""
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
    # Bounds, not startswith: every Parquet reader compares bounds with statistics.
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
