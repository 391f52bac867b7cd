"""Retention: selection and removal of finished segments. Whole files only, by broker time.

Selecting reads no file; `run` is for a thread that may wait. The manifest has a removal before any file
is removed. docs/reference/log-format.md, "Retention and clocks"."""

from __future__ import annotations

from collections.abc import Sequence

from commitlog.disk.clock_guard import Jump, age_us
from commitlog.disk.files import Files
from commitlog.disk.os_errors import FULL
from commitlog.index.dictionary import Dictionary
from commitlog.index.index import index_path
from commitlog.index.segments import SegmentFile
from commitlog.streams import StreamSpec
from commitlog.write.segment_writer import SegmentWriter

EVERYTHING = 1 << 62  # bytes


def finished_ones(segments: Sequence[SegmentFile], below_lsn: int | None = None) -> int:
    """How many of the oldest segments are finished, and have no record from an lsn on; never the last one."""
    finished = 0
    while finished < len(segments) - 1 and segments[finished].end_lsn is not None:
        if below_lsn is not None and segments[finished + 1].base_lsn > below_lsn:
            break
        finished += 1
    return finished


def segments_to_drop(
    segments: list[SegmentFile],
    spec: StreamSpec,
    now_us: int | None,
    jumps: Sequence[Jump] = (),
    newest_us: int = 0,
) -> int:
    """How many of the oldest segments are due: finished ones, and never the last. Reads no file.

    now_us: None while retention by age is suspended
    jumps: of the clock, excluded from ages; newest_us: of the newest record of all
    """
    finished = finished_ones(segments)
    drop = 0
    if spec.retention_bytes_max:
        total = sum(s.disk_bytes for s in segments)
        while drop < finished and total > spec.retention_bytes_max:
            total -= segments[drop].disk_bytes
            drop += 1
    if spec.retention_seconds_max and now_us is not None:
        age_max = spec.retention_seconds_max * 1_000_000
        # The newest record of a segment is no newer than the first of the next one.
        while drop < finished and (first_ts := segments[drop + 1].first_ts or newest_us):
            if age_us(first_ts, now_us, jumps) < age_max:
                break
            drop += 1
    return drop


def without_wanted(segments: list[SegmentFile], due: int, wanted_lsn: int | None, bytes_max: int = EVERYTHING) -> int:
    """How many of the `due` oldest segments may be removed when records from wanted_lsn on are wanted.

    bytes_max: of the due segments at most the newest so many bytes are kept; wanted_lsn None: nothing is wanted"""
    kept = 0
    while due > 0 and wanted_lsn is not None and segments[due].base_lsn > wanted_lsn:
        kept += segments[due - 1].bytes
        if kept > bytes_max:
            break
        due -= 1
    return due


class NoteJumps:
    """Write the clock's jumps to the manifest, so that ages are right after a restart too."""

    def __init__(self, writer: SegmentWriter, jumps: list[Jump]) -> None:
        self._writer, self._jumps = writer, jumps

    def run(self) -> None:
        self._writer.note_jumps(self._jumps)


class SegmentRemoval:
    """Remove whole segments: first the dictionary and the manifest's "first" edit are saved, then the files go."""

    def __init__(
        self, files: Files, writer: SegmentWriter, dictionary: Dictionary, paths: list[str], first_lsn: int
    ) -> None:
        self._files, self._writer, self._dictionary = files, writer, dictionary
        self.paths, self.first_lsn = paths, first_lsn
        self.done = False

    def run(self) -> None:
        """raises: OSError; what was not removed is removed at the next start."""
        try:
            self._promise()
        except OSError as fault:
            if fault.errno not in FULL:
                raise
            # On a full disk nothing can be saved: indexes of the segments to remove make room.
            self._remove_indexes()
            self._promise()
        if self.done:
            remove_segments(self._files, self.paths)

    def _promise(self) -> None:
        # Topics must keep their numbers after their last record is removed.
        if not self._dictionary.save(self.first_lsn):
            return  # a segment among them is not indexed yet: next time
        self._writer.raise_first(self.first_lsn)
        self.done = True

    def _remove_indexes(self) -> None:
        for path in self.paths:
            if self._files.exists(index_path(path)):
                self._files.remove(index_path(path))


def remove_segments(files: Files, paths: list[str]) -> None:
    for path in paths:
        for name in (path, index_path(path)):
            if files.exists(name):
                files.remove(name)
    for directory in sorted({path.rpartition("/")[0] for path in paths}):
        files.sync_directory(directory)
