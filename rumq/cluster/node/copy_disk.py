"""Whether the disk of a copy is good enough to lead with: R10. A full, failing or slow one is left to others.

docs/explanation/replication.md"""

from __future__ import annotations

import os
from collections.abc import Callable

LOOK_SECONDS = 1.0
SLOW_SECONDS = 2.0
SLOW_SYNCS = 2  # slow syncs in a row before the disk counts as slow: a pause makes one
REMEMBERED_SECONDS = 30.0  # slow syncs count for so long, unless a quick one follows
PROBE = "probe"  # name of the file that is written to try the disk
PROBE_BYTES = 4096
FREED = 1.25  # x the least free space that a replica needs to lead; a leader gives up at the least


class CopyDisk:
    """directory: of the probe; free_bytes_min: the reserve, 0 for none; clock: monotonic seconds"""

    def __init__(
        self, directory: str, free_bytes_min: int, clock: Callable[[], float],
        free_bytes: Callable[[str], int] | None = None,
    ) -> None:  # fmt: skip
        """free_bytes: of the disk of a directory. raises: OSError"""
        self._directory, self._least, self._clock = directory, int(free_bytes_min * FREED), clock
        self._free_bytes = free_bytes or free_bytes_of
        self._looked_at = self._slow_until = float("-inf")
        self._has_room = True
        self._slow = 0  # slow syncs in a row

    def took(self, seconds: float) -> None:
        """A sync took so long."""
        if seconds < SLOW_SECONDS:
            self._slow, self._slow_until = 0, float("-inf")
            return
        self._slow += 1
        if self._slow >= SLOW_SYNCS:
            self._slow_until = self._clock() + REMEMBERED_SECONDS

    def is_well(self) -> bool:
        """As far as is known; measures the free space every now and then."""
        now = self._clock()
        if now >= self._looked_at + LOOK_SECONDS:
            self._looked_at = now
            try:
                self._has_room = self._free_bytes(self._directory) >= self._least
            except OSError:
                self._has_room = False
        return self._has_room and now >= self._slow_until

    def can_lead(self) -> bool:
        """Before a claim: also writes and syncs something."""
        if not self.is_well():
            return False
        began = self._clock()
        try:
            write_probe(f"{self._directory}/{PROBE}")
        except OSError:
            return False
        self.took(self._clock() - began)
        return self.is_well()


def free_bytes_of(directory: str) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def write_probe(path: str) -> None:
    """raises: OSError"""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(handle, bytes(PROBE_BYTES), 0)
        os.fdatasync(handle)
    finally:
        os.close(handle)
