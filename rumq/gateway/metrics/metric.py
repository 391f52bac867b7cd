"""What is said of a metric once."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Metric(NamedTuple):
    """key: of `rumq.admin.figures.ShardFigures`; labels: besides shard"""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    key: str
    line: str
    labels: tuple[str, ...] = ()
