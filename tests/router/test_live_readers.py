"""The readers of a group at the end of a partition: in order, and listed anew only when they change."""

from hypothesis import given
from hypothesis import strategies as st

from router.readers.reader import Group, GroupKey, LiveReaders, Reader
from router.readers.subscription import Subscription

GROUP = Group(GroupKey(frozenset([Subscription("t")])), 1)
READERS = [Reader(number, GROUP, [0], "c") for number in range(5)]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(range(len(READERS))))))
def test_they_are_as_a_dictionary_would_have_them(changes: list[tuple[bool, int]]) -> None:
    live, expected = LiveReaders(), dict[Reader, None]()
    for comes, number in changes:
        reader = READERS[number]
        if comes:
            live.add(reader)
            expected[reader] = None
        else:
            assert live.discard(reader) is (reader in expected)
            expected.pop(reader, None)
        assert live.listed() == list(expected) and len(live) == len(expected)
        assert [each in live for each in READERS] == [each in expected for each in READERS]


def test_a_list_that_was_given_out_stays_as_it_was() -> None:
    """A delivery is under way with it while readers come and go."""
    live = LiveReaders()
    live.add(READERS[0])
    before = live.listed()
    assert live.listed() is before
    live.add(READERS[1])
    live.discard(READERS[0])
    assert (before, live.listed()) == ([READERS[0]], [READERS[1]])
