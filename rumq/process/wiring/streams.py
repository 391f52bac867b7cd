"""The streams of the settings as the log's specifications, with the partitions that a data directory already has."""

from __future__ import annotations

import dataclasses
import os

from commitlog import StreamSpec
from commitlog.disk.space import segment_bytes
from rumq.errors import DataDirectoryError, RumqError
from rumq.process.wiring.disk_bounds import space_of
from rumq.settings.table import Settings, Stream

PARTITIONS_MAX = 56  # of all streams together: what slot codes and partition masks have room for
GENERATION = 1


def streams(settings: Settings, data: str) -> list[StreamSpec]:
    """Specifications in order; the last one matches every topic.

    raises: DataDirectoryError if a stream exists with another number of partitions. Without a number in the settings a
    stream keeps the one it has, initially one per shard"""
    specs = []
    total = space_of(data).total_bytes
    for s in settings.stream:
        there = partitions_there(data, s.name)
        if there and s.partitions and there != s.partitions:
            raise DataDirectoryError(
                settings.data.dir,
                f"stream {s.name} has {there} partitions here, and the settings say {s.partitions}: topics would "
                "move to other ones; leave `partitions` out, or use another data directory",
            )
        specs.append(
            StreamSpec(
                s.name, s.filters, there or s.partitions or settings.shards.count, s.durability,
                segment_bytes(s.segment_bytes_max, total) if s.retention == "space" else s.segment_bytes_max,
                s.segment_seconds_max, s.retention_bytes_max or None, s.retention_seconds_max or None,
                s.topics_max, s.retained_bytes_max or None, s.topics_bytes_max, s.retention == "space",
            )
        )  # fmt: skip
    total = sum(spec.partitions for spec in specs)
    if total > PARTITIONS_MAX:
        raise RumqError(f"all streams together have {total} partitions; at most {PARTITIONS_MAX} can be served")
    return specs


def reloaded(spec: StreamSpec, stream: Stream) -> StreamSpec:
    """`spec`, with those settings of its stream that need no restart."""
    return dataclasses.replace(
        spec,
        retention_bytes_max=stream.retention_bytes_max or None,
        retention_seconds_max=stream.retention_seconds_max or None,
        yields=stream.retention == "space",
        topics_max=stream.topics_max,
        topics_bytes_max=stream.topics_bytes_max,
        retained_bytes_max=stream.retained_bytes_max or None,
    )


def partitions_there(data: str, name: str) -> int:
    """Partitions of a stream in a data directory; 0: it does not exist yet"""
    try:
        names = os.listdir(f"{data}/{name}/g{GENERATION}")
    except OSError:
        return 0
    return sum(name[:1] == "p" and name[1:].isdigit() for name in names)
