"""New connections a second: what is over the rate waits its turn by address, or is refused before anything is spent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.auth.connection_rate import WAITING_MAX, WAITING_MIN, Arrivals, ConnectionRate


class Door:
    def __init__(self, per_second: int) -> None:
        self.now = 1000.0
        self.refused: list[str] = []
        self.told: list[str] = []
        self.counts = Arrivals()
        self.rate: ConnectionRate[str] = ConnectionRate(per_second, self.counts, self.refused.append, self.told.append)

    def come(self, holder: str, number: int = 0) -> bool:
        return self.rate.admit(f"{holder}-{number}", holder, self.now)

    def served(self, seconds: float) -> list[str]:
        """Who is served of those that wait, when so much time has passed."""
        self.now += seconds
        found = []
        while (each := self.rate.maybe_next(self.now)) is not None:
            found.append(each)
        return found


def test_what_a_second_brings_comes_at_once_and_the_rest_in_time() -> None:
    door = Door(10)
    assert [door.come("a", n) for n in range(14)] == [True] * 10 + [False] * 4
    assert door.rate.seconds_to_next(door.now) == pytest.approx(0.1)
    assert door.served(0.1) == ["a-10"] and door.served(0.2) == ["a-11", "a-12"]
    assert door.served(60) == ["a-13"] and len(door.rate) == 0
    assert [door.come("a", n) for n in range(10)] == [True] * 9 + [False]


def test_who_comes_behind_those_that_wait_waits_too() -> None:
    door = Door(10)
    for n in range(12):
        door.come("a", n)
    door.now += 0.1
    assert not door.come("b")  # the token is of one that waited longer
    assert door.served(0.2) == ["a-10", "b-0", "a-11"]


def test_addresses_take_turns_however_many_connections_one_opens() -> None:
    door = Door(10)
    for n in range(30):
        door.come("flood", n)
    door.come("b")
    door.come("c")
    assert door.served(0.3) == ["flood-10", "b-0", "c-0"]


def test_the_address_with_the_most_loses_its_newest_and_the_newcomer_is_let_in() -> None:
    door = Door(10)
    for n in range(10 + WAITING_MIN + 4 + 5):
        door.come("flood", n)
    assert len(door.rate) == 20 and door.refused == [f"flood-{n}" for n in range(30, 35)]
    assert not door.come("b") and door.refused[-1] == "flood-29" and len(door.rate) == 20
    assert "b-0" in door.served(0.2)
    assert door.counts.refused == 6 and door.counts.delayed == 26


def test_it_is_told_at_the_first_second_fourth_eighth() -> None:
    door = Door(1)
    for n in range(1 + 16 + 4):
        door.come("a", n)
    assert len(door.told) == len([1, 2, 4, 8, 16]) + len([1, 2, 4])


def test_without_a_rate_everybody_comes_in_and_a_new_rate_is_in_force_at_once() -> None:
    door = Door(0)
    assert all(door.come("a", n) for n in range(10_000))
    door.rate.set(2)
    assert [door.come("a", n) for n in range(4)] == [True] * 2 + [False] * 2
    door.rate.set(0)
    assert door.served(0.0) == ["a-2", "a-3"]


def test_who_waits_when_the_listener_ends_is_given_back() -> None:
    door = Door(1)
    for n in range(3):
        door.come("a", n)
    assert door.rate.take_all() == ["a-1", "a-2"] and len(door.rate) == 0 and door.served(9) == []


@given(
    st.integers(1, 500),
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 0.5), st.booleans()), max_size=300),
)
def test_never_more_than_the_rate_and_nobody_is_forgotten(
    per_second: int, steps: list[tuple[str, float, bool]]
) -> None:
    door = Door(per_second)
    served = 0
    for n, (holder, seconds, is_looked) in enumerate(steps):
        door.now += seconds
        served += door.come(holder, n)
        if is_looked:
            served += len(door.served(0.0))
        assert len(door.rate) <= WAITING_MAX
        assert served <= per_second * (1 + door.now - 1000.0) + 1e-6
    assert served + len(door.rate) + len(door.refused) == len(steps)
