"""Lists of a request with each name once, the first time it is there: so an answer is bounded by what there is and by
the bytes of the request, however often a name is repeated. No topics, no groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

Named = dict[str, Any]


def once(named: Iterable[Named], *keys: str) -> list[Named]:
    """Structures that differ in these fields."""
    found: dict[Hashable, Named] = {}
    for each in named:
        found.setdefault(tuple(each[key] for key in keys), each)
    return list(found.values())


def topics_once(topics: Iterable[Named], *keys: str, partitions: str = "partitions") -> list[Named]:
    """Each topic once, with the partitions of all its repeats, which may repeat themselves."""
    found: dict[Hashable, Named] = {}
    for each in topics:
        known = found.setdefault(tuple(each[key] for key in keys), each | {partitions: []})
        known[partitions] += each[partitions]
    return list(found.values())


def partitions_once(topics: list[Named], key: Callable[[Any], int], *, partitions: str = "partitions") -> list[Named]:
    """Each partition of a topic once. key: its number"""
    for topic in topics:
        numbers: dict[int, Any] = {}
        for each in topic[partitions]:
            numbers.setdefault(key(each), each)
        topic[partitions] = list(numbers.values())
    return topics
