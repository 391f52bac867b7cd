"""Deadlines of connections agree with a dictionary, however they are set, moved, cancelled and reached."""

from math import inf

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rumq.session.state.deadlines import DeadlineWheel


class Item:
    def __init__(self) -> None:
        self.due_at, self.due_place = inf, 0


ITEMS = [Item() for _ in range(6)]
TIMES = st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.3, 1.0, 5.0, 5.2, 5.24, 5.25, 90.0, 1e5, 1e15, 1e300])


class TheWheelAgreesWithADict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.wheel = DeadlineWheel()
        self.model: dict[Item, float] = {}
        for item in ITEMS:
            item.due_at, item.due_place = inf, 0

    @rule(item=st.sampled_from(ITEMS), at=TIMES)
    def put(self, item: Item, at: float) -> None:
        self.wheel.put(item, at)
        self.model[item] = at

    @rule(item=st.sampled_from(ITEMS))
    def cancel(self, item: Item) -> None:
        self.wheel.cancel(item)
        self.model.pop(item, None)

    @rule(now=TIMES)
    def come_due(self, now: float) -> None:
        due = sorted(at for at in self.model.values() if at <= now)
        assert [self.model.pop(item) for item in self.wheel.take_due(now)] == due, "the earliest first, all of them"

    @invariant()
    def an_item_knows_its_deadline_and_the_wheel_how_many_there_are(self) -> None:
        assert len(self.wheel) == len(self.model)
        assert all(item.due_at == self.model.get(item, inf) for item in ITEMS)


TestTheWheelAgreesWithADict = TheWheelAgreesWithADict.TestCase


def test_what_is_cancelled_or_due_leaves_nothing_behind() -> None:
    wheel, items = DeadlineWheel(), [Item() for _ in range(3000)]
    for number, item in enumerate(items):
        wheel.put(item, number * 0.01)
    for item in items[::2]:
        wheel.cancel(item)
    assert wheel.take_due(1e9) == items[1::2]
    assert not len(wheel) and wheel._ticks == {}


def test_one_that_never_comes_is_none() -> None:
    wheel, item = DeadlineWheel(), Item()
    wheel.put(item, 5.0)
    wheel.put(item, inf)
    assert not len(wheel) and wheel.take_due(inf) == []
