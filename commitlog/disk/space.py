"""Disk space limits of the log, and the segments to remove for them. docs/decisions/0019-what-bounds-the-disk.md.

The room of a log is the free space and its own size. A percentage of it stays free; the space of other files is not
compensated, and the log keeps at least the publishers' reserve. Free space and times are arguments."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import NamedTuple

RESERVE_PART = 16  # of the file system at most a sixteenth is reserve, however small it is
OVER_RESERVE = 1.5  # segments are removed before publishers are refused
SEGMENT_PART = 64  # a segment is at most such a part of the file system: then there are always some to let go
SEGMENT_BYTES_MIN = 1 << 16
WINDOW_SECONDS = 600.0
KNOWN_SECONDS = 60.0  # no forecast before


class VolumeSpace(NamedTuple):
    """Of a file system."""

    free_bytes: int
    total_bytes: int


class Sealed(NamedTuple):
    """A finished segment that may go. ts_us: of its first record, µs since 1970"""

    ts_us: int
    bytes: int


def reserve_bytes(free_bytes_min: int, total_bytes: int) -> int:
    """Free bytes below which publishers are refused: the setting, or less on a small file system."""
    return min(free_bytes_min, total_bytes // RESERVE_PART)


def segment_bytes(segment_bytes_max: int, total_bytes: int) -> int:
    """The largest segment: the setting, or less on a small file system."""
    return min(segment_bytes_max, max(SEGMENT_BYTES_MIN, total_bytes // SEGMENT_PART))


def free_wanted(space: VolumeSpace, log_bytes: int, percent: float, reserve: int) -> int:
    """How much must be free: a percentage of the log's room, and more than the reserve."""
    return max(int((space.free_bytes + log_bytes) * percent / 100), int(reserve * OVER_RESERVE))


def missing(space: VolumeSpace, log_bytes: int, wanted: int, reserve: int) -> int:
    """How many bytes of segments must be removed for that; the log keeps the size of the reserve."""
    return max(0, min(wanted - space.free_bytes, log_bytes - reserve))


def oldest_first(here: Sequence[Sequence[Sealed]], elsewhere: Sequence[Sealed], bytes_needed: int) -> list[int]:
    """How many segments of each list of `here` to remove, the oldest of all lists first, until enough bytes are free.

    here: of each partition, in order; elsewhere: those that other processes remove by the same rule"""
    counts = [0] * len(here)
    lines = [(sealed, at) for at, line in enumerate(here) for sealed in line]
    lines += [(sealed, -1) for sealed in elsewhere]
    for sealed, at in sorted(lines, key=lambda each: each[0].ts_us):
        if bytes_needed <= 0:
            break
        bytes_needed -= sealed.bytes
        if at >= 0:
            counts[at] += 1
    return counts


class FillRate:
    """How fast the disk fills, in bytes a second, averaged over minutes; removals do not count."""

    def __init__(self) -> None:
        self.bytes_per_second = 0.0
        self._at: float | None = None
        self._free_bytes = 0
        self._since = 0.0

    def take(self, free_bytes: int, let_go_bytes: int, monotonic: float) -> None:
        """Add a sample. let_go_bytes: removed by retention since the last one; space freed by others is no growth"""
        if self._at is None:
            self._at, self._since = monotonic, monotonic
        elif (seconds := monotonic - self._at) > 0:
            rate = max(0, self._free_bytes - free_bytes + let_go_bytes) / seconds
            # Until the window is full, the average is that of the time there has been.
            window = min(WINDOW_SECONDS, monotonic - self._since)
            self.bytes_per_second += (rate - self.bytes_per_second) * (1 - exp(-seconds / window))
            self._at = monotonic
        self._free_bytes = free_bytes

    def seconds_to(self, bytes_left: int) -> float | None:
        """Seconds until so much will have been written; None: nothing is written, or too few samples."""
        if self._at is None or self._at - self._since < KNOWN_SECONDS or self.bytes_per_second < 1.0:
            return None
        return max(0, bytes_left) / self.bytes_per_second
