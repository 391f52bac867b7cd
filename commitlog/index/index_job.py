"""The job that writes a finished segment's index, for a thread that may wait. docs/reference/log-format.md, "Index"."""

from __future__ import annotations

from commitlog.disk.files import Files
from commitlog.index.dictionary import Dictionary
from commitlog.index.index import read_segment, write_index
from commitlog.index.segments import SegmentFile


class IndexJob:
    """Index a finished segment: from the writer's builder, or from the file."""

    def __init__(self, files: Files, segment: SegmentFile, dictionary: Dictionary) -> None:
        self._files, self._segment, self._dictionary = files, segment, dictionary

    def run(self) -> None:
        """raises: OSError; the index is then made from the segment whenever it is asked for, and tried again later."""
        try:
            self._index(self._segment)
        except OSError:
            self._segment.indexed = False
            raise

    def _index(self, segment: SegmentFile) -> None:
        assert segment.end_lsn is not None
        draft, segment.draft = segment.draft, None
        stop = segment.logical_end
        index = draft.finished() if draft is not None else read_segment(self._files, segment.path, stop)
        self._dictionary.take(index, segment.base_lsn, segment.end_lsn)
        write_index(self._files, segment.path, index, segment.end_lsn, stop)
        segment.places = []  # found in the index from now on
