"""How many bytes bulk senders may have unwritten in a partition from which others await acknowledgements, and when.

The others wait for what is in front of them. So a group of the writer should take not much longer than it must on this
disk: no longer than twice the shortest one, and a quarter of a millisecond. A disk that syncs in 5 ms writes large
groups, or it would write little; one that syncs in 50 µs need not.

Where clients publish a little beside them, bulk senders pay for the time that the disk takes for them: they rest for as
long as their last group took. Knows no partition; the time is an argument."""
# compiled: hot

from __future__ import annotations

ALLOWED_MIN = 1 << 18
SHARED_MIN = 1 << 16  # beside who sends a little; less would be written by way of the page cache
ALLOWED_MAX = 1 << 21
TELLING_BYTES = 1 << 16  # smaller groups say how long a group must take, and nothing of bytes
SPARE_SECONDS = 0.00025
REST_SECONDS_MAX = 0.05
SLOWING = 1.01  # by group: a disk that has become slower is known after some hundred groups


class BulkAllowance:
    """bytes: between 256 KiB and 2 MiB; shared_bytes: beside who sends a little, between 64 KiB and 2 MiB

    rests_until: bulk senders begin again then, beside who sends a little, monotonic seconds

    rest_seconds: how long they rest before that"""

    __slots__ = ("_shortest", "bytes", "rest_seconds", "rests_until", "shared_bytes")

    def __init__(self) -> None:
        self.bytes = self.shared_bytes = ALLOWED_MAX
        self._shortest = self.rest_seconds = self.rests_until = 0.0

    def note(self, size: int, seconds: float, now: float) -> None:
        """A group of so many bytes was written, and synced where that is due, in so many seconds, until now.

        cost: O(1)"""
        shortest = self._shortest * SLOWING
        if seconds < shortest or not shortest:
            shortest = seconds
        self._shortest = shortest
        if size < TELLING_BYTES or seconds <= 0.0:
            return
        self.rest_seconds = seconds if seconds < REST_SECONDS_MAX else REST_SECONDS_MAX
        self.rests_until = now + self.rest_seconds
        wanted = size * (2.0 * shortest + SPARE_SECONDS) / seconds
        shared = wanted if wanted > SHARED_MIN else SHARED_MIN
        if shared > ALLOWED_MAX:
            shared = ALLOWED_MAX
        self.shared_bytes += int((shared - self.shared_bytes) / 4.0)
        if wanted < ALLOWED_MIN:
            wanted = ALLOWED_MIN
        elif wanted > ALLOWED_MAX:
            wanted = ALLOWED_MAX
        self.bytes += int((wanted - self.bytes) / 4.0)
