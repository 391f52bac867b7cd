"""A packed file takes the place of its segment, at once: by a rename. For the writer's thread, which may wait.

An edit of the manifest is true of the file whose salt it has. So whichever file a crash leaves: it is taken as an edit
says, or scanned like one that the manifest does not know. docs/reference/log-format.md, "Packing"."""

from __future__ import annotations

from typing import Protocol

from commitlog.disk.files import Files, remove_if_possible
from commitlog.index.index import index_path, write_index
from commitlog.index.segments import SegmentFile
from commitlog.write.packed_file import PackedSegment


class PackedNotes(Protocol):
    """The manifest of the partition, as who writes to it has it."""

    def note_packed(self, path: str, end_lsn: int, stop: int, salt: int) -> None: ...


class PackedReplacement:
    """`run` it, then `packing.replaced`, also after a failure.

    done: the packed file is in place; has_removed_index: that of the segment"""

    def __init__(self, files: Files, notes: PackedNotes, segment: SegmentFile, packed: PackedSegment) -> None:
        self._files, self._notes, self._packed = files, notes, packed
        self.segment = segment
        self.done = self.has_removed_index = self._is_indexed = False

    def run(self) -> None:
        """raises: OSError; then the index may be missing, and before it is done that is all that has changed"""
        files, path, packed = self._files, self.segment.path, self._packed
        try:
            # Of the file before: its stop says so, but who checks it while this goes on need not see the two differ.
            if files.exists(index_path(path)):
                files.remove(index_path(path))
                self.has_removed_index = True
            files.rename(packed.path, path)
        except OSError:
            remove_if_possible(files, packed.path)
            raise
        self.done = True
        files.sync_directory(path.rpartition("/")[0])
        write_index(files, path, packed.index, packed.end_lsn, packed.stop)
        self._is_indexed = True
        self._notes.note_packed(path, packed.end_lsn, packed.stop, packed.salt)

    def result(self) -> SegmentFile:
        """The segment as it is now, when it is done."""
        old, packed = self.segment, self._packed
        new = SegmentFile(old.path, old.base_lsn, packed.salt, old.first_ts)
        new.end_lsn, new.logical_end = packed.end_lsn, packed.stop
        new.sealed = new.is_packed = True
        new.indexed = self._is_indexed
        return new
