"""The streams that queues lie in, from [queues] and [log]. docs/reference/queues.md, "On the disk"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rumq.settings.table import QueueSection, Stream

NAME, LASTING = "queues", "queues-lasting"
ROOT = "$queues/"
ROLLS = 4  # segments of one time to live, at least: one is removed whole
SEGMENT_SECONDS_MIN = 60


def queue_streams(queues: QueueSection, inherited: Mapping[str, Any]) -> list[Stream]:
    """First what outlives messages: definitions, tries, dead letters, what is delayed. inherited: keys of [log]

    Each has a partition per shard: in a cluster a partition's leader depends on those before it."""
    lasting = ("$queues/$config/#", "$queues/$tries/#", "$queues/$delayed/#", "$queues/$dead/#")
    return [
        stream(LASTING, lasting, queues.lasting_seconds_max, inherited),
        stream(NAME, ("$queues/#",), queues.ttl_seconds_max, inherited),
    ]


def place_of(own: Stream, streams: Sequence[Stream]) -> int:
    """Where one of them goes among the others: `queues` behind all that have a part of its topics, `lasting` first."""
    if own.name == LASTING:
        return 0
    return max((n + 1 for n, each in enumerate(streams) if any(f.startswith(ROOT) for f in each.filters)), default=0)


def stream(name: str, filters: tuple[str, ...], seconds: int, inherited: Mapping[str, Any]) -> Stream:
    values = {
        **inherited,
        "retention": "space",
        "retention_bytes_max": 0,
        "retention_seconds_max": seconds,
        "segment_seconds_max": min(inherited["segment_seconds_max"], max(SEGMENT_SECONDS_MIN, seconds // ROLLS)),
        "export_to": "",
    }
    return Stream(name=name, filters=filters, **values)
