"""Reads records of a partition from the files of a lake, by lsn, for one state of the manifest. docs/guides/lake.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rumq.lake.errors import LakeError
from rumq.lake.folder import Folder, folder_at
from rumq.lake.manifest import NAME, LakeFile, LakeManifest, LakePartition, Lost
from rumq.lake.piece import HOUR_US

MISSING = "the lake does not have them"
TopicRange = tuple[str, str]  # from the first (inclusive) to the second (exclusive)

_known: dict[str, tuple[int, Folder, LakeManifest]] = {}


class Lake(NamedTuple):
    folder: Folder
    manifest: LakeManifest


def lake_at(location: str, *, fresh: bool = False) -> Lake:
    """A lake in the state of its manifest. Long-lived processes read a manifest again only after it has grown.

    fresh: read it in any case. raises: LakeError if there is none, or if it is damaged; OSError"""
    size, folder, manifest = _known.get(location) or (-1, folder_at(location), None)
    now = folder.size(NAME)
    if now < 0:
        raise LakeError(location, f"it has no {NAME}: no lake of rumq, or nothing was exported yet")
    if manifest is None or now != size or fresh:
        manifest = LakeManifest(folder).readable()
        _known[location] = now, folder, manifest
    return Lake(folder, manifest)


def files_within(partition: LakePartition, start: int, end: int) -> list[LakeFile]:
    """Files with any of the records start..end, in lsn order."""
    found = [f for f in partition.files.values() if f.base_lsn < end and start < f.next_lsn]
    return sorted(found, key=lambda file: file.base_lsn)


def lost_within(partition: LakePartition, start: int, end: int) -> list[Lost]:
    """Gaps in the records start..end: those of the manifest, and records that are not exported."""
    if partition.next_lsn < 0 or partition.next_lsn <= start or end <= partition.first_lsn:
        return [Lost(start, end, MISSING)] if start < end else []
    found = [
        Lost(max(start, gap.base_lsn), min(end, gap.next_lsn), gap.why)
        for gap in sorted(partition.gaps)
        if gap.base_lsn < end and start < gap.next_lsn
    ]
    if start < partition.first_lsn:
        found.insert(0, Lost(start, partition.first_lsn, MISSING))
    if partition.next_lsn < end:
        found.append(Lost(partition.next_lsn, end, MISSING))
    return found


def may_have(file: LakeFile, ranges: Sequence[TopicRange] | None) -> bool:
    """Whether a file may have a topic of one of the ranges. ranges: None for all topics"""
    if ranges is None:
        return True
    return any(
        (not file.last_topic or low <= file.last_topic) and (not file.first_topic or file.first_topic < high)
        for low, high in ranges
    )


def read(
    lake: Lake, name: str, start: int, end: int, columns: Sequence[str], *,
    wants: Callable[[str], bool] | None = None, ranges: Sequence[TopicRange] | None = None,
) -> Iterator[pa.Table]:  # fmt: skip
    """The existing records of start..end of a partition in order: one table per file.

    columns: names of the schema; wants: a test of topics; ranges: bounds of the wanted topics
    raises: LakeError if a file differs from the manifest; OSError
    cost: a file in memory, 128 MiB of frames, whatever the range"""
    at = start
    tries = 2
    while at < end:
        try:
            for file in files_within(lake.manifest.partition(name), at, end):
                if may_have(file, ranges):
                    table = part_of(lake.folder, file, at, end, columns, wants, ranges)
                    if len(table):
                        yield table
                at = min(file.next_lsn, end)
            return
        except FileNotFoundError as fault:
            # Merged and removed: the manifest has another file now.
            tries -= 1
            if not tries:
                raise LakeError(lake.folder.location, f"a file of its manifest is gone: {fault}") from None
            lake = lake_at(lake.folder.location, fresh=True)


def part_of(
    folder: Folder, file: LakeFile, start: int, end: int, columns: Sequence[str],
    wants: Callable[[str], bool] | None, ranges: Sequence[TopicRange] | None,
) -> pa.Table:  # fmt: skip
    """The wanted records start..end of one file, by lsn."""
    lsn, topic = pc.field("lsn"), pc.field("topic")
    condition = None
    if file.base_lsn < start or end < file.next_lsn:
        condition = (lsn >= start) & (lsn < end)
    if ranges is not None:
        within = [(topic >= low) & (topic < high) for low, high in ranges]
        some = within[0]
        for more in within[1:]:
            some = some | more
        condition = some if condition is None else condition & some
    names = list(dict.fromkeys([*columns, "lsn", *(["topic"] if wants is not None else [])]))
    try:
        table = opened(folder, file.path, names, condition)
    except pa.ArrowInvalid as fault:
        raise LakeError(
            folder.location,
            f"{file.path} cannot be read ({str(fault).splitlines()[0]}): `rumqd lake verify` has details",
        ) from None
    if condition is None and len(table) != file.rows:
        raise LakeError(folder.location, f"{file.path} has {len(table)} rows, its manifest says {file.rows}")
    if wants is not None:
        distinct = pc.unique(table.column("topic")).to_pylist()
        wanted = [word for word in distinct if wants(word)]
        if len(wanted) < len(distinct):
            table = table.filter(pc.is_in(table.column("topic"), pa.array(wanted, pa.string())))
    return table.take(pc.sort_indices(table, [("lsn", "ascending")])).select(list(columns))


def opened(folder: Folder, path: str, columns: list[str], condition: pc.Expression | None) -> pa.Table:
    # Spark already runs one task per core, so no threads of Arrow.
    return pq.read_table(
        folder.path(path), columns=columns, filters=condition, filesystem=folder.system, use_threads=False,
        partitioning=None,
    )  # fmt: skip


def find_time(lake: Lake, name: str, ts_us: int, end: int) -> int | None:
    """The first record below `end` at or after a time (µs since 1970); None if there is none. raises: as `read`"""
    for file in files_within(lake.manifest.partition(name), 0, end):
        last = file.last_ts if file.last_ts >= 0 else (file.hour + 1) * HOUR_US
        if last < ts_us:
            continue
        condition = (pc.field("ts") >= pa.scalar(ts_us, pa.timestamp("us", "UTC"))) & (pc.field("lsn") < end)
        found = pc.min(opened(lake.folder, file.path, ["lsn"], condition).column("lsn")).as_py()
        if found is not None:
            return int(found)
    return None


def cut(sizes: npt.NDArray[np.int64], rows_max: int, bytes_max: int) -> Iterator[tuple[int, int]]:
    """Parts of rows in order, up to the size of a batch; a larger row is a part of its own.

    sizes: cumulative bytes"""
    marks = [0]
    while marks[-1] < len(sizes):
        at = marks[-1]
        done = int(sizes[at - 1]) if at else 0
        stop = min(int(sizes.searchsorted(done + bytes_max, "right")), at + rows_max)
        marks.append(max(stop, at + 1))
    return pairwise(marks)
