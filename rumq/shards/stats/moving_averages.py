"""Moving averages of rates a minute, over 1, 5 and 15 minutes: like a machine's load, and as mosquitto computes them.

average <- rate + (average - rate) * exp(-elapsed / window)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

WINDOWS = {"1min": 60.0, "5min": 300.0, "15min": 900.0}  # name -> seconds


class MovingAverages:
    """Moving averages of counts that only grow."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._averages: dict[tuple[str, str], float] = {}

    def update(self, counts: Mapping[str, int], elapsed_seconds: float) -> None:
        """counts: as they are now; elapsed_seconds: since the last update. A count begins at 0, as its averages do."""
        if elapsed_seconds <= 0:
            return
        for name, count in counts.items():
            more = max(0, count - self._last.get(name, 0))
            self._last[name] = count
            rate = more * 60.0 / elapsed_seconds
            for window, seconds in WINDOWS.items():
                average = self._averages.get((name, window), 0.0)
                self._averages[name, window] = rate + (average - rate) * exp(-elapsed_seconds / seconds)

    def items(self) -> dict[tuple[str, str], float]:
        """(count, window) -> how much a minute."""
        return dict(self._averages)
