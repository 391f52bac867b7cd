"""Detects a feedback loop: a job that reads the messages that it publishes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rumq.mqtt.topics import filters_overlap
from rumq.table.errors import BadOption


def as_filter(template: str) -> str:
    """The filter of all topics of "daily/{city}/{topic}": a column is one level, `topic` any number."""
    before, whole, _ = template.partition("{topic}")
    levels = re.sub(r"\{\w+\}", "{}", before + "#" if whole else template).split("/")
    return "/".join("#" if level.endswith("#") else "+" if "{}" in level else level for level in levels)


def check_loop(topic: str, subscribe: str, pattern: str) -> None:
    """topic: of the output, with columns in braces; subscribe: filters of the source, empty for all; pattern: of
    --topics, empty for all. raises: BadOption
    """
    out = as_filter(topic)
    filters: Sequence[str] = [name.strip() for name in subscribe.split(",") if name.strip()] or ["#"]
    if any(filters_overlap(out, one) for one in filters) and filters_overlap(out, as_filter(pattern or "#")):
        allowed = (
            "one that --subscribe and --topics do not match: the job would read what it publishes (--other-broker "
            "if it publishes to another broker)"
        )
        raise BadOption("topic", topic, allowed)
