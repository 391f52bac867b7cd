"""How long publishers went without an acknowledgement around each harm. Knows no broker.

A publisher's gap is the largest time between two acknowledgements of which the later came after the harm began, up to
the first one after all was as before. The gap of a harm is the largest of its publishers."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple


class Gap(NamedTuple):
    """seconds: of publishers whose node was there, or was seen to end; silent_s: of those whose node was silent

    what: who was harmed; return_s: the largest while the harmed came back, when their processes start on the same cores
    """

    kind: str
    what: str
    seconds: float
    silent_s: float
    return_s: float


def gap_of(acked_at: Sequence[float], began: float, ends: float) -> float:
    """Seconds; infinite if nothing was acknowledged any more. acked_at: ascending"""
    first, last = bisect_left(acked_at, began), bisect_left(acked_at, ends)
    if last == len(acked_at):
        return math.inf
    start = acked_at[first - 1] if first else began
    times = [start, *acked_at[first : last + 1]]
    return max((later - sooner for sooner, later in itertools.pairwise(times)), default=0.0)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many are not above."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def table(gaps: Sequence[Gap]) -> str:
    """Kind, number, p50, p99 and worst of the gaps in ms."""
    lines = [f"{'kind':28}{'number':>7}{'p50 ms':>9}{'p99 ms':>9}{'worst':>9}{'return p50':>12}{'p99':>9}"]
    for kind in dict.fromkeys(gap.kind for gap in gaps):
        values = [gap.seconds for gap in gaps if gap.kind == kind]
        back = [gap.return_s for gap in gaps if gap.kind == kind]
        figures = [1000 * each for each in (quantile(values, 0.5), quantile(values, 0.99), max(values))]
        lines.append(f"{kind:28}{len(values):7}" + "".join(f"{figure:9,.0f}" for figure in figures))
        lines[-1] += f"{1000 * quantile(back, 0.5):12,.0f}{1000 * quantile(back, 0.99):9,.0f}"
    return "\n".join(lines)
