"""Shared deadlines: nothing is early, little is late, and what shares a tick comes together."""

import math

from hypothesis import given
from hypothesis import strategies as st

from rumq.kafka.parked.shared_deadlines import TICKS_PER_SECOND, SharedDeadlines, tick_at

MOMENTS = st.lists(st.floats(0, 1e7))


@given(st.floats(0, 1e7))
def test_a_tick_is_at_a_moment_or_soon_after_it(moment: float) -> None:
    tick = tick_at(moment)
    assert -1e-8 < tick - moment < 1 / TICKS_PER_SECOND + 1e-8
    assert tick_at(tick) == tick


@given(MOMENTS)
def test_each_is_taken_once_when_its_tick_is_there(moments: list[float]) -> None:
    deadlines: SharedDeadlines[float] = SharedDeadlines()
    for moment in moments:
        deadlines.add(tick_at(moment), moment)
    taken: list[float] = []
    while (at := deadlines.next_at) < math.inf:
        assert deadlines.take(at - 1e-3) == []
        found = deadlines.take(at)
        assert found and {tick_at(each) for each in found} == {at}
        taken += found
    assert sorted(taken) == sorted(moments) and sorted(map(tick_at, taken)) == list(map(tick_at, taken))
