"""Which ids messages got: the n-th acknowledged one of a connection and topic is the n-th record there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rumq.queues.rules.push_ids import PushIds


@given(st.lists(st.sampled_from(["a1", "a2", "b1"]), max_size=30), st.data())
def test_numbers_go_to_their_messages_however_both_come(sent: list[str], data: st.DataObject) -> None:
    """sent: connection and topic of each message; their numbers are their places among those of that key. Both sides
    come in runs of any length."""
    ids, found = PushIds(), dict[str, list[int | None]]()
    left = {side: {key: sent.count(key) for key in set(sent)} for side in ("acknowledged", "recorded")}
    while choices := [(side, key) for side, keys in left.items() for key, count in sorted(keys.items()) if count]:
        side, key = data.draw(st.sampled_from(choices))
        count = data.draw(st.integers(1, left[side][key]))
        first = sent.count(key) - left[side][key]
        left[side][key] -= count
        if side == "recorded":
            ids.see({(key[0], key[1]): [(first, first + count)]})
            continue

        def put(many: int, number: int | None, key: str = key) -> None:
            assert number is not None
            found.setdefault(key, []).extend(range(number, number + many))

        ids.expect(key[0], key[1], count, put, 10.0)
    assert found == {key: list(range(sent.count(key))) for key in set(sent)}
    assert ids.waiting == 0 and not ids._early and not ids._wanted


def test_what_is_not_found_in_time_has_no_id_and_its_record_is_no_others() -> None:
    ids, found = PushIds(), list[tuple[int, int | None]]()

    def put(count: int, number: int | None) -> None:
        found.append((count, number))

    ids.expect("a", "t", 2, put, 5.0)
    assert ids.give_up(4.9) == 0 and ids.give_up(5.0) == 2 and found == [(2, None)]
    ids.expect("a", "t", 1, put, 9.0)
    ids.see({("a", "t"): [(7, 8)]})
    assert found == [(2, None)] and ids.waiting == 1
    ids.see({("a", "t"): [(8, 10)]})
    assert found == [(2, None), (1, 9)] and ids.waiting == 0


def test_a_connection_that_ended_leaves_nothing() -> None:
    ids = PushIds()
    ids.see({("a", "t"): [(1, 2)], ("b", "t"): [(1, 2)]})
    ids.forget("a")
    assert list(ids._early) == [("b", "t")]
