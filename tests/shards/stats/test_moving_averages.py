"""Moving averages over a clock that the test turns."""

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.shards.stats.moving_averages import WINDOWS, MovingAverages


def run(averages: MovingAverages, counts: list[int], step_seconds: float) -> dict[str, float]:
    """What the averages are after a count stood so, once each step."""
    for count in counts:
        averages.update({"n": count}, step_seconds)
    return {window: value for (_, window), value in averages.items().items()}


@pytest.mark.parametrize("step_seconds", [1.0, 10.0, 37.0])
def test_a_steady_rate_is_what_they_all_come_to(step_seconds: float) -> None:
    """120 a minute, for two hours and a half."""
    steps = int(9000 / step_seconds)
    found = run(MovingAverages(), [round(2 * step_seconds * n) for n in range(1, steps + 1)], step_seconds)
    assert all(abs(value - 120.0) < 0.01 for value in found.values()), found


@pytest.mark.parametrize(("window", "seconds"), WINDOWS.items())
def test_after_its_window_an_average_has_come_63_percent_of_the_way(window: str, seconds: float) -> None:
    steps = int(seconds)
    found = run(MovingAverages(), list(range(1, steps + 1)), 1.0)
    assert found[window] == pytest.approx(60.0 * (1 - exp(-1)), rel=1e-9)


def test_when_nothing_more_comes_they_fall_the_shortest_first() -> None:
    averages = MovingAverages()
    before = run(averages, [1000], 10.0)
    after = run(averages, [1000] * 12, 10.0)
    for window, seconds in WINDOWS.items():
        assert after[window] == pytest.approx(before[window] * exp(-120 / seconds))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_how_often_one_looks_at_a_steady_rate_makes_no_difference(steps: list[int]) -> None:
    often, seldom = MovingAverages(), MovingAverages()
    for now in range(1, sum(steps) + 1):
        often.update({"n": now}, 1.0)
    at = 0
    for step in steps:
        at += step
        seldom.update({"n": at}, float(step))
    for key, value in seldom.items().items():
        assert often.items()[key] == pytest.approx(value)


def test_a_count_that_falls_back_is_no_rate_below_nothing() -> None:
    found = run(MovingAverages(), [100, 90, 90], 10.0)
    assert all(value >= 0 for value in found.values())


def test_no_time_no_change() -> None:
    averages = MovingAverages()
    run(averages, [100], 10.0)
    before = averages.items()
    averages.update({"n": 200}, 0.0)
    assert averages.items() == before
