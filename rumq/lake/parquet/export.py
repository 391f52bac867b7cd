"""Exports finished segments to Parquet, each record once. docs/guides/lake.md, "Exactly once".

A segment is exported as a whole: its files are written and checked, then one line of the manifest commits them. An
export that is repeated after a crash writes the same names. The hours of files are those of the records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from commitlog import Chunk, Gap
from commitlog.disk.export_marker import write_exported
from commitlog.disk.files import Files
from commitlog.index.segment_view import SegmentView
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from rumq.lake.columns import batches
from rumq.lake.errors import LakeError
from rumq.lake.file_names import GAPS, file_path, gap_path, is_hidden, maybe_named
from rumq.lake.folder import NEW, Folder, Step, absolute
from rumq.lake.manifest import LakeFile, LakeManifest, LakePartition, Lost, as_fields
from rumq.lake.parquet.file_check import Content, bounds_of
from rumq.lake.parquet.file_publish import publish
from rumq.lake.parquet.merge import MERGED_BYTES_MAX, MergeRound
from rumq.lake.piece import RecordArrays, joined
from rumq.lake.schema import GAPS as GAPS_SCHEMA
from rumq.lake.schema import writer

PIECE_BYTES_MAX = 128 << 20  # of frames that are in memory at once
Names = tuple[dict[int, bytes], dict[int, bytes]]


class ExportCounts(NamedTuple):
    """The totals of a run."""

    segments: int = 0
    files: int = 0
    rows: int = 0
    log_bytes: int = 0
    bytes: int = 0
    gaps: int = 0


class Exporter:
    """Exports the log of one data directory to one folder, which it locks.

    streams: only these, None for all; marks: write the broker's export marker
    step: called with the name of each step once it is done; event: called with the operator's events"""

    def __init__(
        self, files: Files, data: str, folder: Folder, *, streams: Collection[str] | None = None, marks: bool = False,
        step: Step = lambda name: None, event: Callable[..., None] = lambda name, **fields: None,
    ) -> None:  # fmt: skip
        self._files, self._data, self._folder, self._streams = files, data, folder, streams
        self._marks, self._step, self._event = marks, step, event
        self.awaits_mark = False  # in a cluster, a segment is finished and not known to be committed yet
        folder.lock()
        try:
            self.manifest = LakeManifest(folder).writable()
            self._sweep()
        except BaseException:
            folder.unlock()
            raise

    def merge(self, before_hour: int, bytes_max: int = MERGED_BYTES_MAX, *, now_s: int = 0, keep_s: int = 0) -> int:
        """Merge small files of the hours before one (since 1970); how many files are made.

        now_s: seconds since 1970; keep_s: how long merged files stay for queries. raises: OSError, LakeError"""
        merging = MergeRound(self._folder, self.manifest, now_s, keep_s, step=self._step, event=self._event)
        made = merging.merge(before_hour, bytes_max)
        merging.show()
        merging.tidy()
        return made

    def close(self) -> None:
        """Unlock the folder."""
        self._folder.unlock()

    def _sweep(self) -> None:
        """Remove files that a crash left: unfinished ones, and those whose records are in other files."""
        held = {file.path for file in self.manifest.files()} | self.manifest.shadowed()
        for path in self._folder.names(""):
            last = path.rpartition("/")[2]
            if last.startswith("_") and last.endswith(NEW):
                self._folder.remove(path)
                continue
            named = maybe_named(path)
            if named is None or path in held or is_hidden(path):
                continue
            partition = self.manifest.partition(named.partition)
            if path.startswith(f"{GAPS}/"):
                if not any(named[1:] == gap[:2] for gap in partition.gaps) and named.next_lsn <= partition.next_lsn:
                    self._folder.remove(path)
            elif is_covered(partition, named.base_lsn, named.next_lsn):
                self._folder.remove(path)

    def run(self) -> ExportCounts:
        """Export every finished segment that the lake does not have. raises: OSError, LakeError"""
        done, self.awaits_mark = ExportCounts(), False
        for view in LogReader(self._files, self._data, only_committed=True).partitions():
            if self._streams is None or view.stream in self._streams:
                self.awaits_mark |= view.awaits_mark
                for more in self._partition(view):
                    done = ExportCounts(*map(sum, zip(done, more, strict=True)))
        return done

    def _partition(self, view: PartitionView) -> Iterator[ExportCounts]:
        known = self.manifest.partition(view.name)
        segments = [segment for segment in view.segments() if segment.finished]
        self._check_same_log(view, known, segments)
        start = known.next_lsn if known.next_lsn >= 0 else view.first_lsn
        self._write_marker(view, known.next_lsn)
        for segment in segments:
            if segment.end_lsn > start:
                yield self._segment(view, segment, start)
                start = segment.end_lsn

    def _check_same_log(self, view: PartitionView, known: LakePartition, segments: list[SegmentView]) -> None:
        if known.next_lsn < 0:
            return
        name = next((name_of(s) for s in segments if s.base_lsn < known.next_lsn <= s.end_lsn), known.segment)
        if name != known.segment or view.end_lsn < known.next_lsn:
            raise LakeError(
                self._folder.location,
                f"it has records of {view.name} that are not of the log in {self._data}: export each log to a folder "
                "of its own",
            )

    def _segment(self, view: PartitionView, segment: SegmentView, start: int) -> ExportCounts:
        """Export start..the segment's end, in as many files as it has hours, or pieces if it is large."""
        names = view.segment_names(segment.base_lsn)
        files: list[LakeFile] = []
        gaps: list[Lost] = []
        if start < view.first_lsn:
            gaps.append(
                Lost(
                    start,
                    min(view.first_lsn, segment.end_lsn),
                    "retention removed them before they were exported",
                )
            )
        for found in pieces(view, start, segment.end_lsn):
            if isinstance(found, Gap):
                gaps.append(Lost(found.base_lsn, found.next_lsn, found.why))
            else:
                files += [self._file(view.name, hour, part, names) for hour, part in found.hours()]
        for gap in gaps:
            self._gap(view.name, gap)
        self.manifest.add(
            {
                "edit": "add", "partition": view.name, "base_lsn": start, "next_lsn": segment.end_lsn,
                "segment": name_of(segment), "files": [as_fields(file) for file in files],
                "gaps": [list(gap) for gap in gaps],
            }
        )  # fmt: skip
        self._step("committed")
        self._write_marker(view, segment.end_lsn)
        rows = sum(file.rows for file in files)
        done = ExportCounts(1, len(files), rows, segment.bytes, sum(file.bytes for file in files), len(gaps))
        self._event(
            "lake.exported", stream=view.stream, partition=view.number, base_lsn=start, next_lsn=segment.end_lsn,
            files=len(files), bytes=done.bytes,
        )  # fmt: skip
        for gap in gaps:
            self._event(
                "lake.gap", stream=view.stream, partition=view.number, first_lsn=gap.base_lsn,
                next_lsn=gap.next_lsn, why=gap.why,
            )  # fmt: skip
        return done

    def _file(self, partition: str, hour: int, part: RecordArrays, names: Names) -> LakeFile:
        out = pa.BufferOutputStream()
        with writer(out) as parquet:
            for group in batches(part, names, partition):
                parquet.write_table(group)
        raw = out.getvalue()
        base_lsn, next_lsn = int(part.lsns[0]), int(part.lsns[-1]) + 1
        content = Content(len(part), part.lsn_digest(), part.payload_digest())
        path = file_path(partition, hour, base_lsn, next_lsn)
        file = LakeFile(
            path, partition, hour, base_lsn, next_lsn, content.rows, int(part.ends[-1] - part.starts[0]), raw.size,
            crc32(raw), content.lsn, content.payload, *bounds_of(raw),
        )  # fmt: skip
        return publish(self._folder, file, raw, self._step)

    def _gap(self, partition: str, gap: Lost) -> None:
        """A row of the table of gaps."""
        out = pa.BufferOutputStream()
        row = pa.Table.from_pylist([{"partition": partition, **gap._asdict()}], GAPS_SCHEMA)
        pq.write_table(row, out, store_schema=False)
        self._folder.put(gap_path(partition, gap.base_lsn, gap.next_lsn), out.getvalue(), self._step)

    def _write_marker(self, view: PartitionView, next_lsn: int) -> None:
        """Write the export marker: everything below this lsn is exported."""
        if not self._marks or next_lsn < 0:
            return
        write_exported(self._files, view.directory, next_lsn, absolute(self._folder.location))
        self._step("marked")


def pieces(view: PartitionView, start: int, end: int) -> Iterator[RecordArrays | Gap]:
    """The records start..end of a partition, in pieces."""
    chunks: list[Chunk] = []
    size = 0
    for found in view.chunks(start, end):
        if isinstance(found, Chunk) and size + len(found.frames) <= PIECE_BYTES_MAX:
            chunks.append(found)
            size += len(found.frames)
            continue
        if chunks:
            yield joined(chunks)
        chunks, size = [], 0
        if isinstance(found, Gap):
            yield found
        else:
            chunks, size = [found], len(found.frames)
    if chunks:
        yield joined(chunks)


def is_covered(partition: LakePartition, base_lsn: int, next_lsn: int) -> bool:
    """Whether committed files and gaps have all of these records."""
    reached = base_lsn
    spans = sorted([(f.base_lsn, f.next_lsn) for f in partition.files.values()] + [g[:2] for g in partition.gaps])
    for base, following in spans:
        if base <= reached < following:
            reached = following
    has_files = any(f.base_lsn < next_lsn and base_lsn < f.next_lsn for f in partition.files.values())
    return reached >= next_lsn and has_files


def name_of(segment: SegmentView) -> str:
    return segment.path.rpartition("/")[2]
