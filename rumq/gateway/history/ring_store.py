"""Samples of the last hour, day and fortnight, in rings of fixed size: memory does not grow. Knows no clock.

A ring has slots of equal length; slot n has what was between (n - 1) and n steps since 1970."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rumq.gateway.history.series import NAN, SERIES, Join

TIERS = ((2, 1_800), (30, 2_880), (300, 4_032))  # seconds a slot, slots: an hour, a day, a fortnight
FILLED_SLOTS_MAX = 5  # that a late sample stands for; of a longer silence nothing is known


class Points(NamedTuple):
    """start: seconds since 1970 at which the first point begins; values: NaN where nothing is known"""

    start: int
    step: int
    values: dict[str, list[float]]


class Tier:
    """end: the slot written last, 0 for none"""

    def __init__(self, step: int, slots: int, names: Iterable[str]) -> None:
        self.step, self.slots = step, slots
        self.end = 0
        self.series = {name: array("d", [NAN]) * slots for name in names}

    def put(self, slot: int, values: Mapping[str, float]) -> None:
        """Write a slot; those that were skipped get the same, or NaN if they are many. Older slots are left alone."""
        if slot <= self.end:
            return
        skipped = min(slot - self.end - 1, self.slots - 1) if self.end else 0
        for name, ring in self.series.items():
            value = values.get(name, NAN)
            filler = value if skipped <= FILLED_SLOTS_MAX else NAN
            for each in range(slot - skipped, slot):
                ring[each % self.slots] = filler
            ring[slot % self.slots] = value
        self.end = slot

    def read(self, name: str, first: int, last: int) -> list[float]:
        """Slots from first to last, inclusive; NaN for those that the ring does not have."""
        ring, end = self.series[name], self.end
        return [ring[n % self.slots] if end - self.slots < n <= end else NAN for n in range(first, last + 1)]


class RingStore:
    """names: of the series"""

    def __init__(self, names: Sequence[str] = tuple(SERIES), tiers: Sequence[tuple[int, int]] = TIERS) -> None:
        self.tiers = [Tier(step, slots, names) for step, slots in tiers]

    def points(self, names: Sequence[str], seconds: int, points: int, now: float) -> Points:
        """The last seconds before now, in at most so many points, from the finest ring that goes back so far."""
        tier = next((each for each in self.tiers if each.step * each.slots >= seconds), self.tiers[-1])
        coarser = [each for each in self.tiers if tier.step < each.step <= seconds / points]
        tier = coarser[-1] if coarser else tier
        each = max(1, math.ceil(seconds / points / tier.step))  # slots a point
        count = max(1, math.ceil(seconds / (tier.step * each)))
        # Points end at multiples of their length, so that a plot does not shiver while it moves; the last is of a part.
        last = math.ceil(int(now // tier.step) / each) * each
        first = last - count * each + 1
        values = {}
        for name in names:
            slots = tier.read(name, first, last)
            join = SERIES[name].join
            values[name] = [joined(slots[at : at + each], join) for at in range(0, len(slots), each)]
        return Points((first - 1) * tier.step, tier.step * each, values)


def joined(values: Sequence[float], join: Join) -> float:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return NAN
    if join == "mean":
        return sum(known) / len(known)
    return max(known) if join == "max" else min(known)
