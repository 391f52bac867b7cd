"""Which finished segments of a copy are packed, one at a time. docs/reference/log-format.md, "Packing".

Each copy packs for itself, under a salt of its own; only what is committed, so no leader ever cuts it. Knows neither
when nor how fast: `rumq.cluster.node.upkeep.copy_packer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from commitlog.disk.files import Files
from commitlog.index.segments import SegmentFile
from commitlog.write.segment_packing import SegmentPacking


class CopiedSegment(Protocol):
    """`commitlog.replica.inventory.SegmentState`"""

    @property
    def name(self) -> str: ...
    @property
    def base_lsn(self) -> int: ...
    @property
    def end_lsn(self) -> int: ...
    @property
    def stop(self) -> int: ...
    @property
    def is_done(self) -> bool: ...
    @property
    def salt(self) -> int: ...


class CopyPacking:
    """Of one copy, in its directory."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files, self._directory = files, directory
        self._looked_at: set[tuple[str, int]] = set()  # (name, salt) of segments that are packed, or are not to be

    def take(self, segments: Sequence[CopiedSegment], below: int, salt: int) -> SegmentPacking | None:
        """The packing of a segment, for another thread; None: all were looked at.

        segments: of the copy, in order; below: only what ends at or below this lsn; salt: of the packed file"""
        self._looked_at &= {(each.name, each.salt) for each in segments}
        for state in segments[:-1]:
            if state.is_done and state.end_lsn <= below and (state.name, state.salt) not in self._looked_at:
                self._looked_at.add((state.name, state.salt))
                segment = SegmentFile(f"{self._directory}/{state.name}", state.base_lsn, state.salt)
                segment.end_lsn, segment.logical_end = state.end_lsn, state.stop
                return SegmentPacking(self._files, segment, salt)
        return None

    def retry(self, packing: SegmentPacking) -> None:
        """It is looked at again: there was no room, or a node is away."""
        segment = packing.segment
        self._looked_at.discard((segment.path.rpartition("/")[2], segment.salt))
