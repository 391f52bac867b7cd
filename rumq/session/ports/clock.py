"""The time of a turn, as what stands on the loop thread reads it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """The time of the current turn; it does not move within a turn."""

    @property
    def now_us(self) -> int:
        """µs since 1970."""

    @property
    def monotonic(self) -> float:
        """Seconds; only differences mean something."""
