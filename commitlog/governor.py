"""When records may go for their age: not while the clock is not believed. docs/log-format.md, "Retention and clocks".

Stamps are the wall clock's, which people and networks set; how much time passes only the monotonic clock knows. Where
the two part, that is a jump: it is remembered, and records of before are aged without it. For a while after a jump, and
after a start whose clock is far from the newest record, no record goes for its age. Reads no clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SECOND = 1_000_000
JUMP_US = 60 * SECOND  # the clocks may part by so much: what is less is called steering
STABLE_SECONDS = 600.0  # after a jump the clocks must agree for so long
AWAY_US = 24 * 3600 * SECOND  # a broker is seldom away for longer: rather the clock is wrong
AWAY_YEAR_US = 366 * AWAY_US


class Jump(NamedTuple):
    """The wall clock went from one time to the other while no time passed; µs since 1970."""

    before_us: int
    after_us: int

    @property
    def seconds(self) -> float:
        return (self.after_us - self.before_us) / SECOND


def age_us(stamp_us: int, now_us: int, jumps: Sequence[Jump]) -> int:
    """How old a record is at least, by its stamp; below 0 when its stamp is in the future.

    A jump ahead that was taken back counts for nothing. A stamp that was held while the clock was behind it says
    nothing of its own time, so it counts as what it is."""
    jumped = sum(jump.after_us - jump.before_us for jump in jumps if stamp_us <= jump.before_us)
    return now_us - stamp_us - max(0, jumped)


class Governor:
    """Compares the clocks at each look. held: why no record goes for its age now; empty when they may go."""

    def __init__(self, newest_us: int, now_us: int, monotonic: float) -> None:
        """newest_us: the newest stamp in the log, 0 when there is none"""
        self._wall, self._monotonic = now_us, monotonic
        self._stable_since: float | None = monotonic
        self.held = ""
        away = now_us - newest_us
        if not newest_us:
            return
        if away > AWAY_YEAR_US:
            self._stable_since = None
            days = away / AWAY_US
            self.held = (
                f"the clock is {days:.0f} days past the newest record: if it is right, restart the broker"
            )
        elif away > AWAY_US:
            self.held = f"the clock is {away / AWAY_US:.0f} days past the newest record"
        elif away < -JUMP_US:
            self.held = f"the clock is {-away / SECOND:.0f} s behind the newest record"

    def look(self, now_us: int, monotonic: float) -> Jump | None:
        """What the clocks say now; a jump when they have parted since the looks before."""
        expected = self._wall + round((monotonic - self._monotonic) * SECOND)
        if abs(now_us - expected) > JUMP_US:
            self._wall, self._monotonic = now_us, monotonic
            if self._stable_since is not None:
                self._stable_since = monotonic
                self.held = f"the clock jumped by {(now_us - expected) / SECOND:.0f} s"
            return Jump(expected, now_us)
        if self.held and self._stable_since is not None and monotonic - self._stable_since >= STABLE_SECONDS:
            self.held = ""
        if not self.held:
            # Steering adds up over months; what is agreed on now is what the next look is held against.
            self._wall, self._monotonic = now_us, monotonic
        return None
