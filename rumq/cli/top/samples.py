"""Figures of the last minutes, from the counters of all shards: rates and percentiles of samples. No clock here."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from rumq.admin.answers import Metrics
from rumq.admin.figures import ShardFigures
from rumq.session.state.histogram import BOUNDS

SAMPLES_MAX = 120
SECONDS_MIN = 0.4  # between two samples
WINDOW_SECONDS = 10.0  # of percentiles
BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-=+*#@"


class TopSample(NamedTuple):
    """at: monotonic seconds, when sessions were counted; shards: by (number, incarnation)"""

    at: float
    shards: dict[tuple[int, int], ShardFigures]


class Samples:
    def __init__(self) -> None:
        self._kept: deque[TopSample] = deque(maxlen=SAMPLES_MAX)

    def add(self, metrics: Metrics, at: float) -> None:
        """at: when it was asked. Sessions are counted at most once a second, so two answers may have one count: of
        these only the first is kept."""
        counted = at - max((each.counted_seconds_ago for each in metrics.shards), default=0.0)
        if self._kept and counted - self._kept[-1].at < SECONDS_MIN:
            return
        self._kept.append(TopSample(counted, {(each.shard, each.incarnation): each for each in metrics.shards}))

    def gauge(self, name: str) -> float:
        """The newest values of all shards, added."""
        return sum(each.gauges.get(name, 0.0) for each in self._newest())

    def largest(self, name: str) -> float:
        return max((each.gauges.get(name, 0.0) for each in self._newest()), default=0.0)

    def smallest(self, name: str) -> float:
        return min((each.gauges.get(name, 0.0) for each in self._newest()), default=0.0)

    def undelivered(self) -> int:
        return sum(sum(each.undelivered.values()) for each in self._newest())

    def rate(self, name: str) -> float | None:
        """A second, since the sample before; None with the first one."""
        rates = self.rates(name, 1)
        return rates[-1] if rates else None

    def rates(self, name: str, count: int) -> list[float]:
        """The last so many, the newest last."""
        some = list(self._kept)[-count - 1 :]
        return [grown(before, after, name) for before, after in pairwise(some)]

    def percentile(self, name: str, share: float) -> float | None:
        """Upper bound of the durations of this share in the last 10 s, in seconds; None if there were none."""
        if not self._kept:
            return None
        newest = self._kept[-1]
        before = next((each for each in self._kept if newest.at - each.at <= WINDOW_SECONDS), newest)
        counts = [0] * (len(BOUNDS) + 1)
        for key, figures in newest.shards.items():
            old = before.shards.get(key) if before is not newest else None
            now = figures.histograms.get(name)
            was = old.histograms[name].counts if old is not None and name in old.histograms else []
            for index, count in enumerate(now.counts if now is not None else ()):
                counts[index] += count - (was[index] if index < len(was) else 0)
        return bound_of(counts, share)

    def _newest(self) -> Sequence[ShardFigures]:
        return [*self._kept[-1].shards.values()] if self._kept else []


def grown(before: TopSample, after: TopSample, name: str) -> float:
    """A shard that was started again counts from 0."""
    total = 0.0
    for key, figures in after.shards.items():
        old = before.shards.get(key)
        total += figures.counters.get(name, 0.0) - (old.counters.get(name, 0.0) if old is not None else 0.0)
    return max(0.0, total) / max(1e-6, after.at - before.at)


def bound_of(counts: Sequence[int], share: float) -> float | None:
    left = sum(counts) * share
    if left <= 0:
        return None
    for index, count in enumerate(counts):
        left -= count
        if left <= 0:
            return float(BOUNDS[min(index, len(BOUNDS) - 1)])
    return float(BOUNDS[-1])


def sparkline(values: Sequence[float], width: int, bars: str = BARS) -> str:
    """The last values, the largest as the highest bar; zero is the lowest one."""
    some = list(values)[-width:]
    top = max(some, default=0.0)
    line = "".join(
        bars[min(len(bars) - 1, int(value / top * (len(bars) - 1) + 0.5))] if top else bars[0] for value in some
    )
    return line.rjust(width)
