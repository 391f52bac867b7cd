"""Pauses between attempts to connect: exponential, with jitter, bounded. No clock: it says how long, others wait."""

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnect:
    """How a lost connection is opened again.

    first_seconds, seconds_max: the first pause, doubled after each failure, and the longest one
    jitter: the part of a pause that is left to chance, so that a thousand clients do not come back at once; 0: none
    attempts_max: failures in a row after which it is given up; None: never
    chance: a number from 0 to 1, for tests
    """

    first_seconds: float = 0.1
    seconds_max: float = 2.0
    jitter: float = 0.5
    attempts_max: int | None = None
    chance: Callable[[], float] = random.random


class BackOff:
    """Pauses by a `Reconnect`. A connection that has held for `seconds_max` starts them anew."""

    def __init__(self, policy: Reconnect) -> None:
        self._policy = policy
        self._failures = 0

    def connected_for(self, seconds: float) -> None:
        """A connection was lost that lasted so long: one that is lost at once counts as another failure."""
        if seconds >= self._policy.seconds_max:
            self._failures = 0

    def maybe_pause(self) -> float | None:
        """Seconds until the next attempt; None: no more."""
        policy = self._policy
        if policy.attempts_max is not None and self._failures >= policy.attempts_max:
            return None
        pause = policy.first_seconds * 2 ** min(self._failures, 60)
        self._failures += 1
        return float(min(pause, policy.seconds_max) * (1 - policy.jitter * (1 - policy.chance())))
