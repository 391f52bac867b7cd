"""What a copy of a partition has, as digests of its records, which do not depend on the chunks that they are in.

So a packed copy is compared with one that is not, on another machine: by lsn, topic number and offset, time,
publisher's number, flags, payload's place, frame, and QoS 2 tag. Neither names nor what a chunk says of other brokers'
records are part of it. Reads only; a live process may write the files. docs/explanation/replication.md"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator

from commitlog.chunk import Chunk, Gap
from commitlog.index.segments import PlaceCache
from commitlog.read.cold_reads import clipped
from commitlog.read.copy_digest import CopyDigest, SegmentDigest
from commitlog.read.partition_view import PartitionView
from commitlog.row_layout import FRAME_WORD, ROW_BYTES, ROW_WORDS, TAG, TS_WORD

READ_BYTES = 1 << 18
SAME_WORDS = tuple(word for word in range(ROW_WORDS) if word not in (FRAME_WORD, TS_WORD))


def record_digest(view: PartitionView, from_lsn: int, end_lsn: int, bytes_max: int) -> CopyDigest:
    """Digests of the records from_lsn..end_lsn, those of each segment for themselves.

    bytes_max: of rows and frames; at the record with which there are so many it ends, at the same one in every copy
    raises: OSError. cost: reads their chunks once, and 0.2 µs a record"""
    found: list[SegmentDigest] = []
    for segment in view.segments():
        first, end = max(from_lsn, segment.base_lsn), min(end_lsn, segment.end_lsn)
        if first >= end:
            continue
        if bytes_max <= 0:
            return CopyDigest(found, first)
        part = Part(first)
        for piece in pieces(view, first, end):
            bytes_max -= part.take(piece, bytes_max)
            if bytes_max <= 0:
                break
        name = segment.path.rpartition("/")[2]
        found.append(SegmentDigest(name, first, part.next_lsn, part.hexdigest()))
        if part.next_lsn < end:
            return CopyDigest(found, part.next_lsn)
    return CopyDigest(found, end_lsn)


def pieces(view: PartitionView, lsn: int, end_lsn: int) -> Iterator[Chunk | Gap]:
    """Exactly these records, in order. raises: OSError"""
    cache = PlaceCache(1)
    while lsn < end_lsn:
        for piece in view.cold_read(lsn, READ_BYTES, cache).run():
            if piece.next_lsn <= lsn or lsn >= end_lsn:
                continue
            if isinstance(piece, Gap):
                yield Gap(lsn, min(piece.next_lsn, end_lsn), "")
            else:
                yield clipped(piece, lsn, end_lsn)
            lsn = min(piece.next_lsn, end_lsn)


class Part:
    """Records of one segment. A column is hashed for itself: records of one chunk or of two add the same to each."""

    def __init__(self, first_lsn: int) -> None:
        self.next_lsn = self._first_lsn = first_lsn
        self._columns = [hashlib.sha256() for _ in SAME_WORDS]
        self._times, self._places, self._frames, self._tags = (hashlib.sha256() for _ in range(4))
        self._frame_bytes = 0

    def take(self, piece: Chunk | Gap, bytes_max: int) -> int:
        """Add it, or its first records, the last of which reaches `bytes_max`. returns: bytes of rows and frames"""
        if isinstance(piece, Gap):
            self._frames.update(b"lost %d %d" % (piece.base_lsn, piece.next_lsn))
            self.next_lsn = piece.next_lsn
            return 0
        count = count_within(piece, bytes_max)
        if count < piece.count:
            piece = clipped(piece, 0, piece.base_lsn + count)
        words = memoryview(piece.rows).cast("B").cast("I")
        for word, column in zip(SAME_WORDS, self._columns, strict=True):
            column.update(words[word::ROW_WORDS].tobytes())
        self._times.update(array("Q", [piece.base_ts + at for at in words[TS_WORD::ROW_WORDS]]))
        self._places.update(array("Q", [self._frame_bytes + at for at in words[FRAME_WORD::ROW_WORDS]]))
        self._frames.update(piece.frames)
        for row, tag in TAG.iter_unpack(piece.tags):
            self._tags.update(b"%d %d\n" % (piece.base_lsn + row, tag))
        self._frame_bytes += len(piece.frames)
        self.next_lsn = piece.next_lsn
        return len(piece.rows) + len(piece.frames)

    def hexdigest(self) -> str:
        whole = hashlib.sha256(b"%d %d\n" % (self._first_lsn, self.next_lsn))
        for each in (*self._columns, self._times, self._places, self._frames, self._tags):
            whole.update(each.digest())
        return whole.hexdigest()


def count_within(chunk: Chunk, bytes_max: int) -> int:
    """How many of its records have so many bytes together, the last of them in part; all, if they have fewer."""
    if len(chunk.rows) + len(chunk.frames) < bytes_max:
        return chunk.count
    starts = memoryview(chunk.rows).cast("B").cast("I")[FRAME_WORD::ROW_WORDS].tolist()
    ends = [*starts[1:], len(chunk.frames)]
    reached = (row + 1 for row, end in enumerate(ends) if ROW_BYTES * (row + 1) + end >= bytes_max)
    return next(reached, chunk.count)
