"""A histogram of durations with fixed buckets: 64 µs and its doublings, up to 8.4 s. No clock here.

One observation stands for as many messages as the caller says: a batch costs one call."""
# compiled: hot

from __future__ import annotations

BUCKETS = 19  # the last one has no upper bound
FIRST_SECONDS = 64e-6
BOUNDS = tuple(FIRST_SECONDS * 2**power for power in range(BUCKETS - 1))


class Histogram:
    """counts: by bucket; seconds: the sum of all durations"""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.seconds = 0.0

    def observe(self, seconds: float, weight: int = 1) -> None:
        """Cost: constant"""
        left, at = int(seconds * 1e6) >> 6, 0
        while left > 0 and at < BUCKETS - 1:
            left >>= 1
            at += 1
        self.counts[at] += weight
        self.seconds += seconds * weight
