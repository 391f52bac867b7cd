"""Round robin over addresses and their users, with priority, bounds and back-off. docs/guides/security.md."""

from hypothesis import given
from hypothesis import strategies as st

from rumq.auth.fair_queue import (
    BACKOFF_MAX,
    BACKOFF_TURN_SECONDS,
    USER_BACKOFF_MAX,
    USER_PRIORITY_MAX,
    Bounds,
    FairQueue,
)


def test_each_address_has_its_turn() -> None:
    queue: FairQueue[str] = FairQueue(1)
    for item in ("a1", "a2", "a3"):
        queue.put("a", item)
    queue.put("b", "b1")
    order = []
    while (item := queue.maybe_next()) is not None:
        order.append(item)
        queue.finished()
    assert order == ["a1", "b1", "a2", "a3"]


def test_an_address_in_back_off_waits_for_its_refusals() -> None:
    queue: FairQueue[str] = FairQueue(1)
    for _ in range(BACKOFF_MAX):
        queue.begin_backoff("a")
    queue.put("a", "a1")
    assert queue.maybe_next() is None
    queue.end_backoff("a")
    assert queue.maybe_next() == "a1"


def run_all(queue: FairQueue[str]) -> list[str]:
    order = []
    while (item := queue.maybe_next()) is not None:
        order.append(item)
        queue.finished()
    return order


def test_the_users_of_an_address_have_turns_of_their_own() -> None:
    queue: FairQueue[str] = FairQueue(1)
    for item, user in (("a1", "anna"), ("a2", "anna"), ("b1", "ben")):
        queue.put("10.0.0.1", item, user)
    assert run_all(queue) == ["a1", "b1", "a2"]


def test_no_more_run_at_once_than_may() -> None:
    queue: FairQueue[str] = FairQueue(2)
    for item in "abc":
        queue.put(item, item)
    assert queue.maybe_next() and queue.maybe_next() and queue.maybe_next() is None
    queue.finished()
    assert queue.maybe_next() == "c"


def test_items_with_priority_come_first_a_few_of_a_user_at_once() -> None:
    queue: FairQueue[str] = FairQueue(1)
    queue.put("a", "other")
    for number in range(USER_PRIORITY_MAX + 1):
        queue.put("b", f"p{number}", "ben", priority=True)
    assert run_all(queue) == [*(f"p{number}" for number in range(USER_PRIORITY_MAX)), "other", "p4"]


def test_a_full_queue_sheds_the_newest_of_the_largest_address() -> None:
    shed: list[str] = []
    queue: FairQueue[str] = FairQueue(1, Bounds(waiting=4), shed.append)
    for number in range(4):
        assert queue.put("a", f"a{number}")
    assert queue.put("b", "b0") and shed == ["a3"]
    assert queue.put("b", "b1") and shed == ["a3", "a2"]
    assert not queue.put("a", "a4"), "no address has more than it"


def test_a_user_waits_a_bounded_number_of_times_at_all_addresses_together() -> None:
    queue: FairQueue[str] = FairQueue(1, Bounds(user=2))
    assert [queue.put(address, address, "admin") for address in "abc"] == [True, True, False]


def test_an_address_in_back_off_gets_a_turn_now_and_then_and_its_user_in_back_off_none() -> None:
    queue: FairQueue[str] = FairQueue(9)
    for _ in range(BACKOFF_MAX - USER_BACKOFF_MAX):
        queue.begin_backoff("a", "somebody", 0.0)
    for _ in range(USER_BACKOFF_MAX):
        queue.begin_backoff("a", "admin", 0.0)
    queue.put("a", "guess", "admin")
    queue.put("a", "right", "anna")
    assert queue.maybe_next(BACKOFF_TURN_SECONDS / 2) is None
    assert queue.maybe_next(BACKOFF_TURN_SECONDS) == "right"
    assert queue.maybe_next(10.0) is None
    queue.end_backoff("a", "admin")
    assert queue.maybe_next(10.0) == "guess"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "x", "y"]), st.booleans()), max_size=80))
def test_every_item_runs_once_or_was_refused_or_shed(puts: list[tuple[str, str, bool]]) -> None:
    shed: list[str] = []
    queue: FairQueue[str] = FairQueue(1, Bounds(waiting=10, address=5, user=4, priority=3), shed.append)
    accepted = [
        str(number)
        for number, (address, user, priority) in enumerate(puts)
        if queue.put(address, str(number), user, priority=priority)
    ]
    assert queue.waiting <= 10 + 3
    assert sorted(run_all(queue) + shed) == sorted(accepted)
    assert queue.waiting == queue.running == 0
