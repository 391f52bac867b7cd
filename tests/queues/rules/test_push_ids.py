"""Which ids messages got: the n-th acknowledged one of a connection and topic is the n-th record there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rumq.queues.rules.push_ids import PushIds


@given(st.lists(st.sampled_from(["a1", "a2", "b1"]), max_size=30), st.data())
def test_numbers_go_to_their_messages_however_both_come(sent: list[str], data: st.DataObject) -> None:
    """sent: connection and topic of each message; their numbers are their places in `sent`"""
    ids, found = PushIds(), dict[int, int | None]()
    acknowledged = recorded = 0
    while acknowledged < len(sent) or recorded < len(sent):
        if acknowledged < len(sent) and (recorded == len(sent) or data.draw(st.booleans())):
            key = sent[acknowledged]

            def put(number: int | None, at: int = acknowledged) -> None:
                found[at] = number

            ids.expect(key[0], key[1], put, 10.0)
            acknowledged += 1
        else:
            key = sent[recorded]
            ids.see({(key[0], key[1]): [recorded]})
            recorded += 1
    assert found == {number: number for number in range(len(sent))}
    assert ids.waiting == 0 and not ids._early and not ids._wanted


def test_what_is_not_found_in_time_has_no_id_and_its_record_is_no_others() -> None:
    ids, found = PushIds(), list[int | None]()
    ids.expect("a", "t", found.append, 5.0)
    assert ids.give_up(4.9) == 0 and ids.give_up(5.0) == 1 and found == [None]
    ids.expect("a", "t", found.append, 9.0)
    ids.see({("a", "t"): [7, 8]})
    assert found == [None, 8]


def test_a_connection_that_ended_leaves_nothing() -> None:
    ids = PushIds()
    ids.see({("a", "t"): [1], ("b", "t"): [1]})
    ids.forget("a")
    assert list(ids._early) == [("b", "t")]
