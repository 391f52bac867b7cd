"""Paths and names of the files of a lake. docs/guides/lake.md, "What lies where".

A name depends on the records alone: a repeated export writes the same file, not a second one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

NAME = re.compile(r"([a-z0-9][a-z0-9_-]*)-g(\d+)-p(\d{4,})-(\d{20})-(\d{20})\.parquet")
GAPS = "_gaps"
MERGED = "_merged"


class Named(NamedTuple):
    """partition: main/g1/p0; records base_lsn..next_lsn of it"""

    partition: str
    base_lsn: int
    next_lsn: int


def range_name(partition: str, base_lsn: int, next_lsn: int) -> str:
    stream, generation, number = partition.split("/")
    return f"{stream}-{generation}-p{int(number[1:]):04d}-{base_lsn:020d}-{next_lsn:020d}.parquet"


def file_path(partition: str, hour: int, base_lsn: int, next_lsn: int) -> str:
    """hour: since 1970, UTC"""
    when = datetime.fromtimestamp(hour * 3600, UTC)
    stream = partition.partition("/")[0]
    return f"stream={stream}/dt={when:%Y-%m-%d}/hr={when:%H}/{range_name(partition, base_lsn, next_lsn)}"


def hidden_path(path: str) -> str:
    """The path of a merged file until directory listings may show it."""
    return f"{MERGED}/{path.rpartition('/')[2]}"


def is_hidden(path: str) -> bool:
    return path.startswith(f"{MERGED}/")


def gap_path(partition: str, base_lsn: int, next_lsn: int) -> str:
    return f"{GAPS}/{range_name(partition, base_lsn, next_lsn)}"


def maybe_named(path: str) -> Named | None:
    """The fields of a path; None for a foreign one."""
    found = NAME.fullmatch(path.rpartition("/")[2])
    if found is None:
        return None
    stream, generation, number, base, following = found.groups()
    return Named(f"{stream}/g{generation}/p{int(number)}", int(base), int(following))
