"""What a copy of a partition has, as digests that copies on other machines can be compared with.

Only what its committed marks prove, and of that whole chunks: their bytes are the same in every copy. Reads only; a
live process may write the files. docs/explanation/replication.md"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from commitlog.disk.files import Files
from commitlog.format.chunk_position import ChunkPosition
from commitlog.index.segment_view import SegmentView
from commitlog.read.partition_view import PartitionView

BLOCK_BYTES = 1 << 20


class SegmentDigest(NamedTuple):
    """A part of a segment. name: of its file; base_lsn, end_lsn: its records; digest: SHA-256 of their whole chunks"""

    name: str
    base_lsn: int
    end_lsn: int
    digest: str


class CopyDigest(NamedTuple):
    """segments: in order; next_lsn: where the next question goes on; the end that was asked for: there is no more"""

    segments: list[SegmentDigest]
    next_lsn: int


def marked_view(files: Files, root: str, key: str) -> PartitionView | None:
    """A copy as it is now, up to its marks; None if it is not there. key: as main/g1/p0. raises: OSError"""
    stream, generation, number = key.split("/")
    directory = f"{root}/{key}"
    if not files.exists(directory):
        return None
    return PartitionView(files, directory, stream, int(generation[1:]), int(number[1:]), held=True, only_marked=True)


def copy_digest(files: Files, view: PartitionView, from_lsn: int, end_lsn: int, bytes_max: int) -> CopyDigest:
    """Digests of from_lsn..end_lsn, a segment of each; of the chunks that lie within as a whole.

    bytes_max: soft bound; at least a chunk is read. raises: OSError. cost: reads all these bytes once"""
    found: list[SegmentDigest] = []
    left = bytes_max
    for segment in view.segments():
        places: Sequence[ChunkPosition] = [
            each for each in segment.places if each.base_lsn >= from_lsn and each.next_lsn <= end_lsn
        ]
        if not places:
            continue
        if left <= 0:
            return CopyDigest(found, places[0].base_lsn)
        places = within(places, left)
        left -= sum(each.total_len for each in places)
        found.append(digest_of(files, segment, places))
        following = places[-1].next_lsn
        if following < min(segment.end_lsn, end_lsn) and left <= 0:
            return CopyDigest(found, following)
    return CopyDigest(found, end_lsn)


def within(places: Sequence[ChunkPosition], bytes_max: int) -> Sequence[ChunkPosition]:
    """The first of these chunks that have so many bytes, and one at least."""
    for at, each in enumerate(places):
        bytes_max -= each.total_len
        if bytes_max <= 0:
            return places[: at + 1]
    return places


def digest_of(files: Files, segment: SegmentView, places: Sequence[ChunkPosition]) -> SegmentDigest:
    sha = hashlib.sha256()
    handle = files.open(segment.path)
    try:
        for start, stop in runs(places):
            while start < stop:
                block = files.read(handle, start, min(BLOCK_BYTES, stop - start))
                if not block:
                    break  # the file is shorter than its chunks say: another digest than that of a whole copy
                sha.update(block)
                start += len(block)
    finally:
        files.close(handle)
    name = segment.path.rpartition("/")[2]
    return SegmentDigest(name, places[0].base_lsn, places[-1].next_lsn, sha.hexdigest())


def runs(places: Sequence[ChunkPosition]) -> Iterator[tuple[int, int]]:
    """Parts of the file that have these chunks, and nothing between them that is no record."""
    start, stop = places[0].position, places[0].position
    for each in places:
        if each.position != stop:
            yield start, stop
            start = each.position
        stop = each.position + each.total_len
    yield start, stop
