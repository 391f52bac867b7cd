"""How many bytes bulk senders may have unwritten in a partition from which others await acknowledgements.

The others wait for what is in front of them. So a group of the writer should take not much longer than it must on this
disk: no longer than twice the shortest one, and a quarter of a millisecond. A disk that syncs in 5 ms writes large
groups, or it would write little; one that syncs in 50 µs need not. Knows no partition and no clock."""
# compiled: hot

from __future__ import annotations

ALLOWED_MIN = 1 << 18  # less would be written by way of the page cache
ALLOWED_MAX = 1 << 21
TELLING_BYTES = 1 << 16  # smaller groups say how long a group must take, and nothing of bytes
SPARE_SECONDS = 0.00025
SLOWING = 1.01  # by group: a disk that has become slower is known after some hundred groups


class BulkAllowance:
    """bytes: between 256 KiB and 2 MiB"""

    __slots__ = ("_shortest", "bytes")

    def __init__(self) -> None:
        self.bytes = ALLOWED_MAX
        self._shortest = 0.0

    def note(self, size: int, seconds: float) -> None:
        """A group of so many bytes was written, and synced where that is due, in so many seconds. cost: O(1)"""
        shortest = self._shortest * SLOWING
        if seconds < shortest or not shortest:
            shortest = seconds
        self._shortest = shortest
        if size < TELLING_BYTES or seconds <= 0.0:
            return
        wanted = size * (2.0 * shortest + SPARE_SECONDS) / seconds
        if wanted < ALLOWED_MIN:
            wanted = ALLOWED_MIN
        elif wanted > ALLOWED_MAX:
            wanted = ALLOWED_MAX
        self.bytes += int((wanted - self.bytes) / 4.0)
