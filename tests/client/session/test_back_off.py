"""Pauses between attempts: doubled, bounded, partly left to chance."""

import pytest

from rumq.client.session.back_off import BackOff, Reconnect


def pauses(back_off: BackOff, count: int) -> list[float | None]:
    return [back_off.maybe_pause() for _ in range(count)]


def test_pauses_double_up_to_the_longest() -> None:
    back_off = BackOff(Reconnect(first_seconds=1, seconds_max=5, chance=lambda: 1.0))
    assert pauses(back_off, 5) == [1, 2, 4, 5, 5]


@pytest.mark.parametrize(("jitter", "chance", "pause"), [(0.5, 0.0, 2), (0.5, 0.5, 3), (1.0, 0.25, 1), (0.0, 0.0, 4)])
def test_chance_takes_its_part(jitter: float, chance: float, pause: float) -> None:
    back_off = BackOff(Reconnect(first_seconds=4, seconds_max=5, jitter=jitter, chance=lambda: chance))
    assert back_off.maybe_pause() == pause


def test_after_so_many_failures_in_a_row_it_is_given_up() -> None:
    back_off = BackOff(Reconnect(attempts_max=2))
    assert [pause is None for pause in pauses(back_off, 3)] == [False, False, True]


def test_a_connection_that_is_lost_at_once_is_another_failure_and_one_that_holds_is_not() -> None:
    back_off = BackOff(Reconnect(first_seconds=1, seconds_max=8, chance=lambda: 1.0))
    pauses(back_off, 2)
    back_off.connected_for(0.5)
    assert back_off.maybe_pause() == 4
    back_off.connected_for(8)
    assert back_off.maybe_pause() == 1


def test_a_year_of_failures_overflows_nothing() -> None:
    back_off = BackOff(Reconnect(chance=lambda: 1.0))
    assert pauses(back_off, 2000)[-1] == 2.0
