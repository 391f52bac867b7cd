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
TAKEN_BACK_US = (
    3600 * SECOND
)  # a jump back by as much as one ahead, give or take so much, takes that one back
AWAY_US = 24 * 3600 * SECOND  # a broker is seldom away for longer: rather the clock is wrong
AWAY_YEAR_US = 366 * AWAY_US


class Jump(NamedTuple):
    """The wall clock went from one time to the other while no time passed; µs since 1970."""

    before_us: int
    after_us: int

    @property
    def us(self) -> int:
        return self.after_us - self.before_us

    @property
    def seconds(self) -> float:
        return self.us / SECOND


def age_us(stamp_us: int, now_us: int, jumps: Sequence[Jump]) -> int:
    """How old a record is at least, by its stamp; below 0 when its stamp is in the future."""
    return now_us - stamp_us - sum(jump.us for jump in jumps if stamp_us <= jump.before_us)


def behind(newest_us: int) -> Jump:
    """Stands for a clock that is behind the newest stamp: records get that stamp, however much later they come."""
    return Jump(newest_us, newest_us)


def remembered(jumps: Sequence[Jump], jump: Jump | None, newest_us: int, now_us: int) -> list[Jump]:
    """The jumps that ages leave out, after a look at the clock: those ahead only.

    jump: what that look found; newest_us: the newest stamp. What is unsure makes records younger."""
    kept = list(jumps)
    if jump is not None and jump.us < 0:
        for at in reversed(range(len(kept))):
            left = kept[at].us + jump.us
            if kept[at].us and abs(left) <= TAKEN_BACK_US:
                kept[at : at + 1] = [Jump(kept[at].before_us, kept[at].before_us + left)] if left > 0 else []
                break
    if now_us < newest_us - JUMP_US:
        if behind(newest_us) not in kept:
            kept.append(behind(newest_us))
    elif jump is not None and jump.us > 0 and now_us >= newest_us:
        # Of records that came while the clock was behind the stamps nothing says when, but it was before now.
        kept = [each for each in kept if each != behind(newest_us)]
        kept.append(Jump(max(jump.before_us, newest_us), now_us))
    return kept


def caught_up(jumps: Sequence[Jump], now_us: int) -> list[Jump]:
    """The same jumps at a start: where the clock has passed stamps that were held, those count from now on."""
    return [
        Jump(jump.before_us, now_us) if not jump.us and jump.before_us < now_us else jump for jump in jumps
    ]


class ClockGuard:
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
