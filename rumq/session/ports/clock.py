"""The time of a turn, as what stands on the loop thread reads it."""
# compiled: warm

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


class TurnClock:
    """A `Clock` that what each message meets reads without the interpreter; whoever begins turns sets it."""

    __slots__ = ("monotonic", "now_us")

    def __init__(self, now_us: int = 0, monotonic: float = 0.0) -> None:
        self.now_us, self.monotonic = now_us, monotonic
