"""Merges small files of an hour into larger ones. docs/guides/lake.md, "Merging".

A merged file is written and checked like any other, under a name that directory listings do not show, and one line of
the manifest replaces its sources. The sources stay for running queries. Then the file is shown in its hour's folder and
the sources are removed; later its hidden name is removed. So no running query loses a file, and no directory listing
misses a record. The time is an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from rumq.lake.errors import LakeError
from rumq.lake.file_names import MERGED, file_path, hidden_path, is_hidden
from rumq.lake.folder import Folder, Step
from rumq.lake.manifest import LakeFile, LakeManifest, as_fields
from rumq.lake.parquet.file_check import Content, bounds_of, content_of, table_of
from rumq.lake.parquet.file_publish import publish
from rumq.lake.schema import MERGED_GROUP_ROWS, writer

MERGED_BYTES_MAX = 128 << 20  # of the frames in one file; the merge needs about four times as much memory


def groups(manifest: LakeManifest, before_hour: int, bytes_max: int) -> Iterator[list[LakeFile]]:
    """Adjacent files of one partition and hour that fit into one: two or more."""
    for partition in manifest.partitions.values():
        in_order = sorted(partition.files.values(), key=lambda file: file.base_lsn)
        for hour, files in groupby(in_order, key=lambda file: file.hour):
            if hour >= before_hour:
                continue
            group: list[LakeFile] = []
            for file in files:
                # A hidden file can be merged again once it is shown.
                if is_hidden(file.path) or sum(each.raw for each in group) + file.raw > bytes_max:
                    if len(group) > 1:
                        yield group
                    group = []
                if not is_hidden(file.path):
                    group.append(file)
            if len(group) > 1:
                yield group


class MergeRound:
    """One round of merging. now_s: seconds since 1970; keep_s: how long a replaced file stays"""

    def __init__(
        self, folder: Folder, manifest: LakeManifest, now_s: int, keep_s: int, *,
        step: Step = lambda name: None, event: Callable[..., None] = lambda name, **fields: None,
    ) -> None:  # fmt: skip
        self._folder, self._manifest = folder, manifest
        self._now_s, self._before_s = now_s, now_s - keep_s
        self._step, self._event = step, event

    def merge(self, before_hour: int, bytes_max: int) -> int:
        """Merge the files of all hours before one (since 1970); returns the number of new files.

        raises: OSError, LakeError"""
        found = list(groups(self._manifest, before_hour, bytes_max))
        for group in found:
            merged = merge_group(self._folder, group, self._step)
            gone = [file.path for file in group]
            self._change("merge", merged, gone)
            self._step("merged")
            self._event("lake.merged", path=merged.path, files=len(gone), rows=merged.rows, bytes=merged.bytes)
        return len(found)

    def show(self) -> None:
        """Show merged files to directory listings in place of their sources. raises: OSError"""
        for partition in self._manifest.partitions.values():
            due = [path for path, hidden in partition.hidden.items() if hidden.since <= self._before_s]
            for path in due:
                file, gone = partition.files[path], partition.hidden[path].gone
                shown = file._replace(path=file_path(file.partition, file.hour, file.base_lsn, file.next_lsn))
                self._folder.copy(path, shown.path, self._step)
                self._change("show", shown, [path])
                self._step("shown")
                for old in gone:
                    self._remove(old)

    def tidy(self) -> None:
        """Remove the hidden names of files shown long ago, and files that a crash left. raises: OSError"""
        named = {file.path for file in self._manifest.files()}
        kept = {path: at for each in self._manifest.partitions.values() for path, at in each.kept.items()}
        for path in self._folder.names(MERGED):
            if path not in named and kept.get(path, 0) <= self._before_s:
                self._remove(path)

    def _change(self, kind: str, file: LakeFile, gone: list[str]) -> None:
        self._manifest.add(
            {
                "edit": kind, "partition": file.partition, "files": [as_fields(file)], "gone": gone,
                "at": self._now_s,
            }
        )  # fmt: skip

    def _remove(self, path: str) -> None:
        self._folder.remove(path)
        self._step("removed")


def merge_group(folder: Folder, group: list[LakeFile], step: Step) -> LakeFile:
    """Write the file with the records of all of these."""
    table = pa.concat_tables([read_back(folder, file) for file in group]).combine_chunks()
    order = pc.sort_indices(table, [("topic", "ascending"), ("topic_offset", "ascending")])
    out = pa.BufferOutputStream()
    with writer(out) as parquet:
        for at in range(0, len(order), MERGED_GROUP_ROWS):
            parquet.write_table(table.take(order.slice(at, MERGED_GROUP_ROWS)))
    raw = out.getvalue()
    first, last = group[0], group[-1]
    merged = LakeFile(
        hidden_path(file_path(first.partition, first.hour, first.base_lsn, last.next_lsn)), first.partition, first.hour,
        first.base_lsn, last.next_lsn, sum(file.rows for file in group), sum(file.raw for file in group), raw.size,
        crc32(raw), sum(file.lsn for file in group) % 2**64, sum(file.payload for file in group) % 2**64,
        *bounds_of(raw),
    )  # fmt: skip
    return publish(folder, merged, raw, step)


def read_back(folder: Folder, file: LakeFile) -> pa.Table:
    """The content of a file. raises: LakeError if it is damaged: then it is not merged"""
    raw = folder.read(file.path)
    table = table_of(raw) if crc32(raw) == file.crc else None
    if table is None or content_of(table) != Content(file.rows, file.lsn, file.payload):
        raise LakeError(
            folder.location,
            f"{file.path} is damaged, so its hour is not merged: `rumqd lake verify` has details",
        )
    return table
