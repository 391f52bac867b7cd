"""Convert Spark's filters to `PushedFilters`, which the source applies to every row; Spark applies the others.

docs/guides/spark.md, "Read"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import Filter, Not

from rumq.table.pushed_filters import TESTS, Condition, PushedFilters

MEANINGS = {"offset": "lsn", "timestamp": "ts"}  # of schemaStyle kafka
TEXTS = ("topic", "partition")
NUMBERS = ("lsn", "ts")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def push(filters: Iterable[Filter]) -> tuple[PushedFilters, list[Filter]]:
    """(accepted, others) of a conjunction of Spark's filters (pyspark.sql.datasource.Filter)."""
    pushed_filters, left = PushedFilters(), []
    for each in filters:
        more = pushed_down(pushed_filters, each)
        if more is None:
            left.append(each)
        else:
            pushed_filters = more
    return pushed_filters, left


def pushed_down(pushed_filters: PushedFilters, condition: Filter) -> PushedFilters | None:
    negated = isinstance(condition, Not)
    if isinstance(condition, Not):
        condition = condition.child
    kind, value = type(condition).__name__, getattr(condition, "value", None)
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    column = MEANINGS.get(path[0], path[0]) if len(path) == 1 else ""
    if column not in (*TEXTS, *NUMBERS):
        return None
    if kind in ("IsNotNull", "IsNull"):  # these columns are never null
        return pushed_filters if (kind == "IsNotNull") != negated else None
    if column in NUMBERS:
        return None if negated else narrowed(pushed_filters, column, kind, value)
    words = list(value or ()) if kind == "In" else [value]
    if kind not in TESTS or not all(isinstance(word, str) for word in words):
        return None
    test = Condition(kind, frozenset(words) if kind == "In" else value, negated)
    if column == "topic":
        return replace(pushed_filters, topics=(*pushed_filters.topics, test))
    return replace(pushed_filters, partitions=(*pushed_filters.partitions, test))


def narrowed(pushed_filters: PushedFilters, column: str, kind: str, value: object) -> PushedFilters | None:
    number = number_of(column, value)
    if number is None:
        return None
    first, end = ("first_lsn", "end_lsn") if column == "lsn" else ("first_us", "end_us")
    least, above = getattr(pushed_filters, first), getattr(pushed_filters, end)
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
    return replace(pushed_filters, **{first: least, end: above})


def number_of(column: str, value: object) -> int | None:
    if column == "lsn":
        return value if type(value) is int else None
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - EPOCH) // timedelta(microseconds=1)
