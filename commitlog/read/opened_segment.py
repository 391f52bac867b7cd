"""A segment's file, opened for reading, with the positions of its chunks.

A finished segment may have been packed since somebody learnt of it: then another file is at its path, which has the
same records in fewer chunks, under another salt. Who is about to read positions of the old file gets those of the new
one here. docs/reference/log-format.md, "Packing"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from commitlog.disk.files import Files
from commitlog.format.chunk_position import ChunkPosition
from commitlog.format.segment import salt_now
from commitlog.index.segments import PlaceCache, SegmentFile


class OpenedSegment(NamedTuple):
    """segment: of the file that is open, which may be another one than was asked for"""

    handle: int
    segment: SegmentFile
    places: list[ChunkPosition]


@contextmanager
def opened(files: Files, segment: SegmentFile, cache: PlaceCache) -> Iterator[OpenedSegment]:
    """raises: OSError; FileNotFoundError when retention removed it"""
    handle = files.open(segment.path)
    try:
        found = as_it_is(files, handle, segment)
        yield OpenedSegment(handle, found, cache.places(files, found, handle))
    finally:
        files.close(handle)


def as_it_is(files: Files, handle: int, segment: SegmentFile) -> SegmentFile:
    """The segment, or what has taken its place at its path. raises: OSError"""
    salt = salt_now(files, handle, segment.path, segment.salt)
    if salt == segment.salt:
        return segment
    packed = SegmentFile(segment.path, segment.base_lsn, salt, segment.first_ts)
    packed.end_lsn, packed.logical_end = segment.end_lsn, files.size(segment.path)
    packed.sealed = packed.indexed = True
    if packed.end_lsn is None:
        packed.end_lsn = segment.base_lsn + sum(place.count for place in segment.places)
    return packed
