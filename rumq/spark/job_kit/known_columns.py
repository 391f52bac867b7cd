"""The columns that a job will find, told before Spark starts: a wrong name costs no JVM."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from rumq.spark.job_kit.dataframe_columns import topic_parts
from rumq.spark.source.schema import types_of
from rumq.table.options import parse

OPENING, CLOSING = "<(", ">)"


def known_columns(source: Mapping[str, str], topics: str | None, json: str | None) -> list[str] | None:
    """Of the log with these options, with those of --topics and --json; None where only Spark can tell.

    raises: BadOption"""
    found = [*types_of(parse(source, now_us=time.time_ns() // 1000, streaming=None))]
    if topics:
        found += topic_parts(topics)
    if json:
        names = names_of(json)
        if names is None:
            return None
        found += names
    return found


def names_of(schema: str) -> list[str] | None:
    """The names of a schema in Spark's DDL, "time timestamp, celsius double"; None where that takes Spark's parser."""
    parts, depth = [""], 0
    for letter in schema:
        depth += (letter in OPENING) - (letter in CLOSING)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    named = [re.match(r"\s*(\w+)(\s*:\s*|\s+)\w", part, re.ASCII) for part in parts]
    return [each[1] for each in named if each is not None] if all(named) and depth == 0 else None
