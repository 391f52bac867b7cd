"""Streams: sets of topics with common durability and retention. A topic is in the first stream whose filters match.

The match function is an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from commitlog.checksum import crc32

MIB = 2**20
Matches = Callable[[str, str], bool]
SYNCED = ("disk", "quorum")


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """durability: an acknowledged record survives a kill ("process"), or a power loss as well ("disk");
    "memory": neither, it is in no file (`volatile`); "quorum": the loss of machines, as long as a majority of
    those with copies is left. Who makes the copies says what a majority has (`Partition.note_replicated`).
    retention: None keeps everything; sizes in bytes, ages in seconds.
    yields: whether its oldest segments are removed when the disk is nearly full (`commitlog.disk.space`).
    topics_max, topics_bytes_max (of their names), retained_bytes_max (of a partition): enforced by
    callers that add topics or retain; None: any number."""

    name: str
    filters: tuple[str, ...]
    partitions: int = 1
    durability: Literal["memory", "process", "disk", "quorum"] = "disk"
    segment_bytes_max: int = 64 * MIB
    segment_seconds_max: int = 3600
    retention_bytes_max: int | None = None
    retention_seconds_max: int | None = None
    topics_max: int | None = None
    retained_bytes_max: int | None = None
    topics_bytes_max: int | None = None
    yields: bool = False


def stream_of(topic: str, streams: list[StreamSpec], matches: Matches) -> int:
    """Index of the stream that has the topic; a catch-all must be among them."""
    for index, stream in enumerate(streams):
        for topic_filter in stream.filters:
            # `$` topics match no filter that begins with a wildcard, but they must be kept as well.
            if topic_filter == "#" or matches(topic_filter, topic):
                return index
    raise ValueError(f"no stream matches {topic!r}: add one with the filter '#'")


def partition_of(topic: str, partitions: int) -> int:
    """A stable hash: the same after a restart, in every language."""
    return crc32(topic.encode()) % partitions
