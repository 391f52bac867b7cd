"""Small files of an hour become few larger ones. docs/lake.md, "Merging".

A merged file is written and checked like any other, then one line of the manifest puts it in the place of those that it
is made of, and only then do they go. Knows no log and no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rumq.lake.checking import Content, content_of
from rumq.lake.errors import LakeError
from rumq.lake.folder import Folder, Step
from rumq.lake.manifest import File, Manifest, as_fields
from rumq.lake.naming import file_path
from rumq.lake.publishing import publish
from rumq.lake.schema import GROUP_ROWS, writer

MERGED_BYTES_MAX = 128 << 20  # of the frames in one file; about four times as much is in memory meanwhile


def groups(manifest: Manifest, before_hour: int, bytes_max: int) -> Iterator[list[File]]:
    """Neighbours of one partition and hour that fit into one file: two or more."""
    for partition in manifest.partitions.values():
        in_order = sorted(partition.files.values(), key=lambda file: file.base_lsn)
        for hour, files in groupby(in_order, key=lambda file: file.hour):
            if hour >= before_hour:
                continue
            group: list[File] = []
            for file in files:
                if group and sum(each.raw for each in group) + file.raw > bytes_max:
                    if len(group) > 1:
                        yield group
                    group = []
                group.append(file)
            if len(group) > 1:
                yield group


def merge(
    folder: Folder, manifest: Manifest, before_hour: int, *, bytes_max: int = MERGED_BYTES_MAX,
    step: Step = lambda name: None, event: Callable[..., None] = lambda name, **fields: None,
) -> int:  # fmt: skip
    """Merge the files of all hours before one (since 1970); returns how many files are made.

    raises: OSError, LakeError"""
    made = 0
    for group in list(groups(manifest, before_hour, bytes_max)):
        merged = merge_group(folder, group, step)
        gone = [file.path for file in group]
        manifest.add(
            {"edit": "merge", "partition": merged.partition, "files": [as_fields(merged)], "gone": gone}
        )
        step("merged")
        for path in gone:
            folder.remove(path)
            step("removed")
        event("lake.merged", path=merged.path, files=len(gone), rows=merged.rows, bytes=merged.bytes)
        made += 1
    return made


def merge_group(folder: Folder, group: list[File], step: Step) -> File:
    """The file that has the records of all of these, in place."""
    table = pa.concat_tables([read_back(folder, file) for file in group]).combine_chunks()
    order = pc.sort_indices(table, [("topic", "ascending"), ("topic_offset", "ascending")])
    out = pa.BufferOutputStream()
    with writer(out) as parquet:
        for at in range(0, len(order), GROUP_ROWS):
            parquet.write_table(table.take(order.slice(at, GROUP_ROWS)))
    raw = out.getvalue()
    first, last = group[0], group[-1]
    merged = File(
        file_path(first.partition, first.hour, first.base_lsn, last.next_lsn), first.partition, first.hour,
        first.base_lsn, last.next_lsn, sum(file.rows for file in group), sum(file.raw for file in group), raw.size,
        crc32(raw), sum(file.lsn for file in group) % 2**64, sum(file.payload for file in group) % 2**64,
    )  # fmt: skip
    return publish(folder, merged, raw, step)


def read_back(folder: Folder, file: File) -> pa.Table:
    """All of a file. raises: LakeError when it is not what was written: then it stays as it is"""
    raw = folder.read(file.path)
    table = pq.read_table(pa.BufferReader(raw), use_threads=False) if crc32(raw) == file.crc else None
    if table is None or content_of(table) != Content(file.rows, file.lsn, file.payload):
        raise LakeError(
            folder.place, f"{file.path} is damaged, so its hour is not merged: `rumqd lake verify` says more"
        )
    return table
