"""Deadlines of transport handshakes: a short one until the first byte, and another one from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

H = TypeVar("H")


class HandshakeDeadlines(Generic[H]):
    """seconds_max: from the first byte on; silent_seconds_max: until the first byte"""

    def __init__(
        self, clock: Callable[[], float], later: Callable[[float, Callable[[], None]], None],
        ended: Callable[[H, str], None], *, seconds_max: float, silent_seconds_max: float,
    ) -> None:  # fmt: skip
        """ended: takes each that is past its deadline, which is forgotten then, and why"""
        self.seconds_max, self.silent_seconds_max = seconds_max, silent_seconds_max
        self._clock, self._later, self._ended = clock, later, ended
        # The earliest first: until the first byte, and from then on.
        self._silent: dict[H, float] = {}
        self._open: dict[H, float] = {}
        self._next_check = float("inf")

    def __len__(self) -> int:
        return len(self._silent) + len(self._open)

    def begin(self, handshake: H) -> None:
        """Nothing has come of it yet."""
        self._silent[handshake] = self._clock() + self.silent_seconds_max
        self._check_in(self.silent_seconds_max)

    def give_time(self, handshake: H) -> None:
        """From now on, as from its first byte."""
        self.drop(handshake)
        self._open[handshake] = self._clock() + self.seconds_max
        self._check_in(self.seconds_max)

    def drop(self, handshake: H) -> None:
        self._silent.pop(handshake, None)
        self._open.pop(handshake, None)

    def _check_in(self, seconds: float) -> None:
        at = self._clock() + seconds
        if at < self._next_check:
            self._next_check = at
            self._later(seconds, self._check)

    def _check(self) -> None:
        """End those past their deadline."""
        self._next_check = float("inf")
        now = self._clock()
        for deadlines, why in (
            (self._silent, f"silent for {self.silent_seconds_max:g} s"),
            (self._open, f"not open within {self.seconds_max:g} s"),
        ):
            while deadlines:
                handshake, deadline = next(iter(deadlines.items()))
                if deadline > now:
                    self._check_in(deadline - now)
                    break
                self.drop(handshake)
                self._ended(handshake, why)
