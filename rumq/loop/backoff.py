"""Exponential back-off between restarts of a process that keeps dying."""

from __future__ import annotations

from collections.abc import Sequence


class Backoff:
    def __init__(self, waits_seconds: Sequence[float], steady_seconds: float) -> None:
        """waits_seconds: before the first, second ... restart in a row, the last one from then on

        steady_seconds: a process that ran so long was healthy, and its death counts as the first"""
        self._waits, self._steady_seconds = waits_seconds, steady_seconds
        self.deaths = 0  # in a row

    def died(self, ran_seconds: float) -> float:
        """Count a death; returns the seconds to wait before the restart."""
        self.deaths = self.deaths + 1 if ran_seconds < self._steady_seconds else 1
        return self._waits[min(self.deaths, len(self._waits)) - 1]
