"""Deadlines agree with a dictionary, however they are set, moved, cancelled and reached."""

from math import inf

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rumq.session.state.deadlines import SWEEP_MIN, Deadline, Deadlines


class Item:
    def __init__(self) -> None:
        self.timer: Deadline | None = None


ITEMS = [Item() for _ in range(5)]


class DeadlinesAgreeWithADict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.deadlines = Deadlines()
        self.model: dict[Item, float] = {}
        for item in ITEMS:
            item.timer = None

    @rule(item=st.sampled_from(ITEMS), at=st.integers(0, 20))
    def put(self, item: Item, at: int) -> None:
        self.deadlines.put(item, at)
        self.model[item] = at

    @rule(item=st.sampled_from(ITEMS))
    def cancel(self, item: Item) -> None:
        self.deadlines.cancel(item)
        self.model.pop(item, None)

    @rule(now=st.integers(0, 20))
    def come_due(self, now: int) -> None:
        due = sorted(at for at in self.model.values() if at <= now)
        found = []
        while (item := self.deadlines.maybe_due(now)) is not None:
            assert item.timer is None
            found.append(self.model.pop(item))
        assert found == due, "the earliest first, and all of them"

    @invariant()
    def the_next_one_is_known(self) -> None:
        assert self.deadlines.earliest() == min(self.model.values(), default=inf)


TestDeadlinesAgreeWithADict = DeadlinesAgreeWithADict.TestCase


def test_cancelled_entries_keep_no_item_and_are_swept_away() -> None:
    deadlines = Deadlines()
    kept = Item()
    deadlines.put(kept, 1.0)
    for _ in range(3 * SWEEP_MIN):
        item = Item()
        deadlines.put(item, 2.0)
        entry = item.timer
        deadlines.cancel(item)
        assert entry is not None and entry.item is None
    assert len(deadlines) <= SWEEP_MIN + 1
    assert deadlines.maybe_due(1.0) is kept
