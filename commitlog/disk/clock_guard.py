"""Guards retention by age against clock jumps. docs/reference/log-format.md, "Retention and clocks".

Timestamps are of the wall clock, which people and networks set; elapsed time is of the monotonic clock. Where the two
differ, the wall clock has jumped: jumps are recorded, and the age of earlier records excludes them. For a while after a
jump, and after a start whose clock is far from the newest record, no record is removed for its age."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SECOND = 1_000_000
JUMP_US = 60 * SECOND  # a smaller difference is steering, not a jump
STABLE_SECONDS = 600.0  # after a jump the clocks must agree for so long
TAKEN_BACK_US = 3600 * SECOND  # a jump back by as much, give or take, reverts one ahead
AWAY_US = 24 * 3600 * SECOND  # a broker is seldom away for longer: rather the clock is wrong
AWAY_YEAR_US = 366 * AWAY_US


class Jump(NamedTuple):
    """The wall clock moved from one time to the other while no time passed; µs since 1970."""

    before_us: int
    after_us: int

    @property
    def us(self) -> int:
        return self.after_us - self.before_us

    @property
    def seconds(self) -> float:
        return self.us / SECOND


def age_us(stamp_us: int, now_us: int, jumps: Sequence[Jump]) -> int:
    """The minimum age of a record, by its timestamp; below 0 when that is in the future."""
    return now_us - stamp_us - sum(jump.us for jump in jumps if stamp_us <= jump.before_us)


def behind(newest_us: int) -> Jump:
    """Represents a clock behind the newest timestamp: later records get that timestamp."""
    return Jump(newest_us, newest_us)


def remembered(jumps: Sequence[Jump], jump: Jump | None, newest_us: int, now_us: int) -> list[Jump]:
    """The jumps that ages exclude, after a comparison of the clocks: forward ones only.

    jump: result of the comparison; newest_us: the newest timestamp. In doubt, records count as younger."""
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
        # While the clock is behind the timestamps, the only known bound of a record's time is now.
        kept = [each for each in kept if each != behind(newest_us)]
        kept.append(Jump(max(jump.before_us, newest_us), now_us))
    return kept


def caught_up(jumps: Sequence[Jump], now_us: int) -> list[Jump]:
    """The same jumps at a start: where the clock has passed repeated timestamps, ages count from now on."""
    return [Jump(jump.before_us, now_us) if not jump.us and jump.before_us < now_us else jump for jump in jumps]


class ClockGuard:
    """Compares the clocks at each `look`. held: why retention by age is suspended; empty when it is not."""

    def __init__(self, newest_us: int, now_us: int, monotonic: float) -> None:
        """newest_us: the newest timestamp in the log, 0 when there is none"""
        self._wall, self._monotonic = now_us, monotonic
        self._stable_since: float | None = monotonic
        self.held = ""
        away = now_us - newest_us
        if not newest_us:
            return
        if away > AWAY_YEAR_US:
            self._stable_since = None
            days = away / AWAY_US
            self.held = f"the clock is {days:.0f} days past the newest record: if it is right, restart the broker"
        elif away > AWAY_US:
            self.held = f"the clock is {away / AWAY_US:.0f} days past the newest record"
        elif away < -JUMP_US:
            self.held = f"the clock is {-away / SECOND:.0f} s behind the newest record"

    def look(self, now_us: int, monotonic: float) -> Jump | None:
        """Compare the clocks; a jump when they differ by more than steering since the last comparison."""
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
            # Steering adds up over months, so the next comparison starts from here.
            self._wall, self._monotonic = now_us, monotonic
        return None
