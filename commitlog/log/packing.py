"""Packing of a partition's segments, as the loop sees it: what is packed next, and what has become of it.

The work itself is for other threads: `SegmentPacking`, `PackedReplacement`. docs/reference/log-format.md, "Packing"."""

from __future__ import annotations

from commitlog.chunk import NUMBER_MAX
from commitlog.log.partition import Partition
from commitlog.write.packed_replacement import PackedReplacement
from commitlog.write.segment_packing import SegmentPacking


def take_packing(partition: Partition, below: int = NUMBER_MAX) -> SegmentPacking | None:
    """The packing of a finished segment that ends at or below an lsn, for another thread; None: all were looked at."""
    segment = partition.segments.next_unpacked(below)
    if segment is None:
        return None
    return SegmentPacking(partition.files, segment, partition.writer.new_salt())


def take_replacement(partition: Partition, packing: SegmentPacking) -> PackedReplacement | None:
    """Puts a packed file in place, on the writer's thread; then call `replaced`. None: the segment goes, or is gone."""
    segments = partition.segments
    if segments.removing or packing.packed is None or packing.segment not in segments.files:
        return None
    segments.replacing = True
    return PackedReplacement(partition.files, partition.writer, packing.segment, packing.packed)


def replaced(partition: Partition, replacement: PackedReplacement) -> None:
    """Apply a replacement that has run."""
    partition.segments.replacing = False
    if replacement.done:
        partition.segments.replace(replacement.segment, replacement.result())
    elif replacement.has_removed_index:
        replacement.segment.indexed, replacement.segment.tried_at = False, 0  # it is made again
