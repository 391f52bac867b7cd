"""What the writer thread of a partition tells the loop thread of its segments, beside the chunks written."""

from __future__ import annotations

from typing import NamedTuple

from commitlog.format.segment import SegmentHeader
from commitlog.index.index_builder import IndexBuilder


class SegmentOpened(NamedTuple):
    """A segment that now exists."""

    path: str
    header: SegmentHeader


class Preallocated(NamedTuple):
    """The active segment's file has blocks up to `end`, as zeros."""

    end: int


class SegmentEnded(NamedTuple):
    """A segment that is finished: sealed and synced, or given up. logical_end: the byte behind its last chunk that
    counts; draft: of its index, None when given up."""

    end_lsn: int
    logical_end: int
    draft: IndexBuilder | None
