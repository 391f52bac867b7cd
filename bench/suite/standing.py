"""Which rows of a series' table come first: those in which a peer is ahead of the broker that the series is about."""

import math
from dataclasses import dataclass

from bench.suite.scenario import Scenario
from bench.suite.series import Series

HIGHER_IS_BETTER = {"delivered_per_s", "published_per_s"}
# Figures that say what was measured, not how well a broker did.
UNRATED = {"lost", "generator_late_p99_us", "fdatasync_p50_us", "beyond_sync_p50_us"}
# A rate that the load fixes differs by the last message's delay: that close is level.
LEVEL = 1.02


@dataclass(frozen=True, slots=True)
class Rows:
    """One scenario's figures, in the order they are shown."""

    scenario: Scenario
    figures: tuple[str, ...]


def behind_and_ahead(series: Series) -> tuple[list[Rows], list[Rows]]:
    """(rows in which a peer is ahead of the first one, all others), each grouped by scenario.

    In the first part what is furthest behind comes first, scenarios and figures; the other keeps their order.
    """
    behind: list[tuple[float, Rows]] = []
    rest: list[Rows] = []
    for scenario in series.scenarios:
        lags = {figure: lag(series, scenario, figure) for figure in scenario.figures}
        worst_first = sorted((one for one in lags if lags[one] > LEVEL), key=lambda one: -lags[one])
        others = tuple(one for one in scenario.figures if lags[one] <= LEVEL)
        if worst_first:
            behind.append((lags[worst_first[0]], Rows(scenario, tuple(worst_first))))
        if others:
            rest.append(Rows(scenario, others))
    return [rows for _, rows in sorted(behind, key=lambda one: -one[0])], rest


def lag(series: Series, scenario: Scenario, figure: str) -> float:
    """How many times better than the first broker the best other one is; 0.0 where there is nothing to compare."""
    if figure in UNRATED:
        return 0.0
    own, *others = (series.median(scenario.key, peer, figure) for peer in series.peers)
    pairs = [(other, own) if figure in HIGHER_IS_BETTER else (own, other) for other in others]
    ratios = [over / under for over, under in pairs if under]
    return max((ratio for ratio in ratios if not math.isnan(ratio)), default=0.0)
