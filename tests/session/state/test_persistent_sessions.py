"""Sessions that outlive their connections: a bound for all, and a fair part for each holder.

docs/guides/security.md."""

from hypothesis import given
from hypothesis import strategies as st

from rumq.session.state.persistent_sessions import PersistentSessions, holder_of


def test_a_holder_is_the_user_or_the_network() -> None:
    assert holder_of("anna", "10.0.0.1") == "user anna"
    assert holder_of(None, "10.0.0.1") == "address 10.0.0.1"
    assert holder_of(None, "2001:db8::1") == holder_of(None, "2001:db8::2")


def fill(sessions: PersistentSessions, holder: str, sessions_max: int) -> int:
    count = 0
    while not sessions.refusal(holder, sessions_max):
        sessions.add(holder)
        count += 1
    return count


def test_alone_a_holder_gets_half_and_there_is_room_for_another_one() -> None:
    sessions = PersistentSessions()
    assert fill(sessions, "a", 100) == 50
    assert fill(sessions, "b", 100) == 25
    assert not sessions.refusal("c", 100)


def test_two_that_take_turns_get_a_third_each() -> None:
    sessions = PersistentSessions()
    held = {"a": 0, "b": 0}
    while any(not sessions.refusal(holder, 99) for holder in held):
        for holder in held:
            if not sessions.refusal(holder, 99):
                sessions.add(holder)
                held[holder] += 1
    assert held == {"a": 33, "b": 33}


def test_a_bound_for_each_holder_replaces_the_fair_part() -> None:
    sessions = PersistentSessions()
    for _ in range(80):
        assert not sessions.refusal("a", 100, 80)
        sessions.add("a")
    assert "may have no more" in sessions.refusal("a", 100, 80)
    assert not sessions.refusal("b", 100, 80)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "move", "remove"])), max_size=60))
def test_the_count_is_the_sum_of_the_holders(steps: list[tuple[str, str]]) -> None:
    sessions, held = PersistentSessions(), list[str]()
    for holder, step in steps:
        if step == "add":
            sessions.add(holder)
            held.append(holder)
        elif held and step == "move":
            sessions.add(holder, held.pop(0))
            held.append(holder)
        elif held:
            sessions.remove(held.pop(0))
        assert sessions.count == len(held)
        for each in "abc":
            assert bool(sessions.refusal(each, 1000, 2)) == (held.count(each) >= 2)
