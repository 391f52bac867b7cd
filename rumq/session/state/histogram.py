"""A histogram of durations with fixed buckets: 64 µs and its doublings, up to 8.4 s. No clock here.

One observation stands for as many messages as the caller says: a batch costs one call."""
# compiled: hot

from __future__ import annotations

from array import array

BUCKETS = 19  # the last one has no upper bound
FIRST_SECONDS = 64e-6
BOUNDS = tuple(FIRST_SECONDS * 2**power for power in range(BUCKETS - 1))


class Histogram:
    """seconds: the sum of all durations"""

    __slots__ = ("_counts", "seconds")

    def __init__(self) -> None:
        self._counts = array("q", bytes(8 * BUCKETS))
        self.seconds = 0.0

    @property
    def counts(self) -> list[int]:
        """By bucket."""
        return list(self._counts)

    def observe(self, seconds: float, weight: int = 1) -> None:
        """Cost: constant"""
        at, bound, most = 0, 64.0, BUCKETS - 1
        while seconds * 1e6 >= bound and at < most:
            bound *= 2.0
            at += 1
        self._counts[at] += weight
        self.seconds += seconds * weight
