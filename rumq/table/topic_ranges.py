"""Ranges of topics that MQTT topic filters cover, in code point order. MQTT 5.0, 4.7.

A range may hold more than its filter matches: `rumq.mqtt.topics.matches` decides on each topic."""

from __future__ import annotations

from collections.abc import Sequence

AFTER_SLASH = "0"  # the character behind "/"


def topic_range(topic_filter: str) -> tuple[str, str] | None:
    """Bounds (from, below) of all topics that a filter covers; None: no bounds."""
    literal = literal_levels(topic_filter)
    if not literal:
        return None
    path = "/".join(literal)
    if path == topic_filter:
        return path, path + "\0"  # no topic is in between
    # `a/#` covers `a` too; `a/+` covers what begins with `a/`.
    return path, path + AFTER_SLASH


def topic_ranges(topic_filters: Sequence[str]) -> list[tuple[str, str]] | None:
    """Bounds of each of some filters; None: no bounds."""
    found = [topic_range(each) for each in topic_filters]
    ranges = [each for each in found if each is not None]
    return ranges if found and len(ranges) == len(found) else None


def literal_levels(topic_filter: str) -> list[str]:
    """The levels before the first wildcard."""
    levels = topic_filter.split("/")
    return levels[: next((n for n, level in enumerate(levels) if level in ("#", "+")), len(levels))]
