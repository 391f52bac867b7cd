"""The log's disk limits as a sentence, for the event `disk.bounds`; the rules are `commitlog.disk.space`'s."""

from __future__ import annotations

import os
from typing import Any

from commitlog import RealFiles
from commitlog.disk.space import VolumeSpace, reserve_bytes
from rumq.settings.table import Settings, Stream

SECONDS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def space_of(data: str) -> VolumeSpace:
    """Space on the file system of a data directory, which need not exist yet. raises: OSError"""
    path = os.path.abspath(data)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return RealFiles().space(path)


def reserve(settings: Settings, data: str) -> int:
    """Free bytes below which publishers are refused."""
    return reserve_bytes(settings.log.free_bytes_min, space_of(data).total_bytes)


def bounds(settings: Settings, data: str) -> dict[str, Any]:
    """The fields of `disk.bounds`."""
    space = space_of(data)
    return {
        "free_bytes": space.free_bytes,
        "total_bytes": space.total_bytes,
        "why": sentence(settings, reserve_bytes(settings.log.free_bytes_min, space.total_bytes)),
    }


def sentence(settings: Settings, refused_below: int) -> str:
    """What limits the log, for people."""
    yielding = [stream for stream in settings.stream if stream.retention == "space"]
    forever = [stream.name for stream in settings.stream if stream.retention == "forever"]
    parts = []
    if yielding:
        percent, wanted = settings.log.free_percent_min, settings.log.wanted_free_percent_min
        parts.append(
            f"the oldest segments{' of other streams' if forever else ''} go when less than {percent:g} % of the log's "
            f"room is free (below {wanted:g} % also those that sessions or the export still need)"
        )
    if forever:
        parts.append(f"nothing bounds {' and '.join(forever)} (retention = forever)")
    parts += [f"{stream.name} keeps {kept}" for stream in settings.stream if (kept := own_bounds(stream))]
    parts.append(f"publishers are refused when less than {counted(refused_below, BYTES)} is free")
    return "; ".join(parts)


def own_bounds(stream: Stream) -> str:
    kept = []
    if stream.retention_seconds_max:
        kept.append(counted(stream.retention_seconds_max, SECONDS))
    if stream.retention_bytes_max:
        kept.append(f"{counted(stream.retention_bytes_max, BYTES)} a partition")
    return " and ".join(kept)


def counted(number: int, units: tuple[tuple[int, str], ...]) -> str:
    """A number in the largest unit in which it is at least 1."""
    for size, unit in units:
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return str(number)
