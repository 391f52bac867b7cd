"""The state of a channel: who gets what, for how long, how often. docs/reference/queues.md, "Delivery"."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rumq.queues.rules.channel_state import HEAP_SLACK, RECENT_MAX, ChannelHolder, ChannelState
from rumq.queues.rules.definitions import ChannelSettings
from rumq.queues.rules.messages import FIXED_BYTES, Delivered
from rumq.queues.rules.names import MessageId

USUAL = ChannelSettings(visible_seconds=30.0, tries_max=3)
ORDERED = ChannelSettings(visible_seconds=30.0, tries_max=3, is_ordered=True)


def message(number: int, key: str | None = None) -> Delivered:
    return Delivered(MessageId("t", number), b"%d" % number, 1, 0, key)


def numbers(found: list[Delivered]) -> list[int]:
    return [each.id.number for each in found]


def ids(*given: int) -> list[MessageId]:
    return [MessageId("t", number) for number in given]


def filled(settings: ChannelSettings = USUAL, count: int = 5, *, key: str | None = None) -> ChannelState:
    state = ChannelState(settings)
    for number in range(1, count + 1):
        assert state.arrived(message(number, key), number, 0.0)
    return state


def test_messages_are_given_in_the_order_of_their_arrival_as_far_as_credit_goes() -> None:
    state = filled()
    one, other = state.join(2), state.join(10)
    assert numbers(state.take(one, 100, 0.0)) == [1, 2]
    assert numbers(state.take(one, 100, 0.0)) == []
    assert numbers(state.take(other, 2, 0.0)) == [3, 4]
    assert numbers(state.take(other, 100, 0.0)) == [5]


def test_what_is_acknowledged_is_done_and_frees_credit() -> None:
    state = filled()
    holder = state.join(2)
    state.take(holder, 2, 0.0)
    assert state.acknowledge(holder, ids(2), 1.0) == []
    assert state.drain().tokens == [2]
    assert numbers(state.take(holder, 100, 1.0)) == [3]
    assert len(state) == 4


def test_an_acknowledgement_of_what_one_does_not_hold_does_nothing_and_is_said() -> None:
    state = filled()
    holder, stranger = state.join(5), state.join(5)
    state.take(holder, 2, 0.0)
    assert state.acknowledge(stranger, ids(1, 4, 77), 0.0) == ids(1, 4, 77)
    assert state.reject(stranger, ids(1), None, 0.0) == ids(1)
    assert state.extend(stranger, ids(1), 5.0, 0.0) == ids(1)
    assert state.acknowledge(holder, ids(1, 1), 0.0) == ids(1)  # once
    assert state.drain().tokens == [1]


def test_what_is_not_answered_within_its_visible_time_goes_to_another() -> None:
    state = filled(count=1)
    slow, other = state.join(1), state.join(1)
    assert numbers(state.take(slow, 1, 0.0)) == [1]
    assert state.take(other, 1, 29.9) == []
    assert state.next_at == 30.0
    (again,) = state.take(other, 1, 30.0)
    assert again.tries == 2
    assert state.acknowledge(slow, ids(1), 30.1) == ids(1)
    assert state.acknowledge(other, ids(1), 30.1) == []


def test_extend_holds_a_message_longer() -> None:
    state = filled(count=1)
    slow, other = state.join(1), state.join(1)
    state.take(slow, 1, 0.0)
    assert state.extend(slow, ids(1), 60.0, 20.0) == []
    assert state.take(other, 1, 79.0) == []
    assert state.acknowledge(slow, ids(1), 79.0) == []


def test_a_rejected_message_comes_again_before_younger_ones_or_after_its_delay() -> None:
    state = filled(count=3)
    holder = state.join(2)
    state.take(holder, 2, 0.0)
    assert state.reject(holder, ids(1, 2), None, 0.0) == []
    assert numbers(state.take(holder, 2, 0.0)) == [1, 2]
    state.reject(holder, ids(1), 5.0, 0.0)
    assert numbers(state.take(holder, 2, 4.9)) == [3]
    state.acknowledge(holder, ids(2, 3), 4.9)
    assert state.next_at == 5.0
    assert numbers(state.take(holder, 2, 5.0)) == [1]


def test_a_message_that_failed_too_often_is_to_be_buried_and_then_done() -> None:
    state = filled(count=1)
    holder = state.join(1)
    for tries in (1, 2, 3):
        (given,) = state.take(holder, 1, 0.0)
        assert given.tries == tries
        state.reject(holder, ids(1), None, 0.0)
    assert state.take(holder, 1, 0.0) == []
    effects = state.drain()
    assert [each.message.id for each in effects.dead] == ids(1) and effects.tokens == []
    state.unburied(effects.dead, 1.0, 0.0)
    assert state.take(holder, 1, 0.9) == [] and state.drain().dead == []
    assert state.take(holder, 1, 1.0) == []
    effects = state.drain()
    state.buried(effects.dead)
    assert state.drain().tokens == [1] and len(state) == 0 and state.counts.dead == 1


def test_tries_are_told_as_they_change_and_when_they_are_over() -> None:
    state = filled(count=1)
    holder = state.join(1)
    state.take(holder, 1, 0.0)
    state.reject(holder, ids(1), None, 0.0)
    assert state.drain().failed == {MessageId("t", 1): 1}
    state.take(holder, 1, 0.0)
    state.acknowledge(holder, ids(1), 0.0)
    assert state.drain().failed == {MessageId("t", 1): 0}


def test_tries_of_before_count() -> None:
    state = ChannelState(USUAL, lambda each: each.number)
    for number in (1, 2, 3):
        state.arrived(message(number), number, 0.0)
    holder = state.join(5)
    assert [each.tries for each in state.take(holder, 5, 0.0)] == [2, 3]
    assert [each.message.id for each in state.drain().dead] == ids(3)


def test_what_a_consumer_held_when_it_left_has_failed() -> None:
    state = filled(count=3)
    holder, other = state.join(3), state.join(3)
    state.take(holder, 2, 0.0)
    state.leave(holder, 0.0)
    assert [(each.id.number, each.tries) for each in state.take(other, 5, 0.0)] == [(1, 2), (2, 2), (3, 1)]


def test_what_is_given_back_unseen_has_not_failed() -> None:
    state = filled(count=3)
    holder, other = state.join(3), state.join(3)
    state.take(holder, 2, 0.0)
    state.give_back(holder, 0.0)
    assert [(each.id.number, each.tries) for each in state.take(other, 5, 0.0)] == [(1, 1), (2, 1), (3, 1)]


def test_a_message_that_comes_again_is_the_same_one_with_the_new_token() -> None:
    state = filled(count=1)
    holder = state.join(1)
    state.take(holder, 1, 0.0)
    assert not state.arrived(message(1), 77, 1.0)
    assert state.take(holder, 1, 1.0) == []
    state.acknowledge(holder, ids(1), 1.0)
    assert state.drain().tokens == [77]
    assert not state.arrived(message(1), 78, 2.0)  # its acknowledgement was lost
    assert state.drain().tokens == [78] and len(state) == 0


def test_expired_messages_are_given_to_nobody() -> None:
    state = ChannelState(USUAL)
    state.arrived(message(1), 1, 0.0, 10.0)
    state.arrived(message(2), 2, 0.0, 20.0)
    holder = state.join(5)
    assert numbers(state.take(holder, 5, 10.0)) == [2]
    assert state.drain().tokens == [1] and state.counts.expired == 1


def test_of_one_key_the_next_message_is_given_once_the_one_before_is_done() -> None:
    state = ChannelState(ORDERED)
    for number, key in ((1, "a"), (2, "a"), (3, "b"), (4, None), (5, "a")):
        state.arrived(message(number, key), number, 0.0)
    holder, other = state.join(9), state.join(9)
    assert numbers(state.take(holder, 9, 0.0)) == [1, 3, 4]
    assert state.take(other, 9, 0.0) == []
    state.reject(holder, ids(1), 3.0, 0.0)
    assert state.take(other, 9, 1.0) == []  # it waits for its next try, and so do those behind it
    assert numbers(state.take(other, 9, 3.0)) == [1]
    state.acknowledge(other, ids(1), 3.0)
    assert numbers(state.take(holder, 9, 3.0)) == [2]
    state.acknowledge(holder, ids(2), 3.0)
    assert numbers(state.take(other, 9, 3.0)) == [5]


def test_without_a_session_every_message_is_somebody_elses() -> None:
    state = filled(ORDERED, key="a")
    holder = state.join(5)
    state.take(holder, 5, 0.0)
    state.forget()
    assert state.acknowledge(holder, ids(1), 0.0) == ids(1)
    assert len(state) == 0 and state.next_at is None
    state.arrived(message(1, "a"), 9, 0.0)
    assert numbers(state.take(holder, 5, 0.0)) == [1]


def test_held_messages_that_are_answered_leave_nothing_behind() -> None:
    state = ChannelState(USUAL)
    holder = state.join(10)
    for number in range(1, 20_000):
        state.arrived(message(number), number, 0.0)
        state.take(holder, 1, 0.0)
        state.acknowledge(holder, ids(number), 0.0)
    state.drain()
    assert len(state._timers) <= HEAP_SLACK + 1
    assert RECENT_MAX <= len(state._recent | state._older) < 2 * RECENT_MAX and not state._entries and not state._lines


class AgreesWithAList(RuleBasedStateMachine):
    """However consumers behave: nothing is lost, nothing is with two at once, keys are in order, tries are counted."""

    consumers_max = 3

    @initialize(is_ordered=st.booleans(), tries_max=st.integers(0, 3))
    def begin(self, is_ordered: bool, tries_max: int) -> None:
        self.settings = ChannelSettings(visible_seconds=10.0, tries_max=tries_max, is_ordered=is_ordered)
        self.state = ChannelState(self.settings)
        self.now = 0.0
        self.next = 1
        self.keys: dict[int, str | None] = {}
        self.left: dict[int, int] = {}  # messages that are not done -> tries that failed
        self.held: dict[int, tuple[ChannelHolder, float]] = {}
        self.waits: dict[int, float] = {}
        self.dying: dict[int, object] = {}
        self.done: list[int] = []
        self.tokens: Counter[int] = Counter()
        self.holders: list[ChannelHolder] = []

    @rule(count=st.integers(1, 4), key=st.sampled_from([None, "a", "b"]))
    def arrive(self, count: int, key: str | None) -> None:
        for _ in range(count):
            assert self.state.arrived(message(self.next, key), self.next, self.now)
            self.left[self.next], self.keys[self.next] = 0, key
            self.next += 1

    @rule(data=st.data())
    def arrive_again(self, data: st.DataObject) -> None:
        if self.next > 1:
            number = data.draw(st.integers(1, self.next - 1))
            assert not self.state.arrived(message(number, self.keys[number]), number, self.now)
            if number not in self.left:
                self.tokens[number] -= 1  # it is acknowledged once more

    @precondition(lambda self: len(self.holders) < self.consumers_max)
    @rule(credit=st.integers(1, 3))
    def join(self, credit: int) -> None:
        self.holders.append(self.state.join(credit))

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), count=st.integers(1, 5))
    def take(self, data: st.DataObject, count: int) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        mine = sum(by is holder for by, _ in self.held.values())
        found = self.state.take(holder, count, self.now)
        self.pass_time()
        assert len(found) <= min(count, holder.credit - mine)
        for each in found:
            number = each.id.number
            assert number in self.left and number not in self.held and number not in self.dying
            assert each.tries == self.left[number] + 1
            assert self.now >= self.waits.pop(number, 0.0)
            if self.settings.is_ordered and self.keys[number] is not None:
                older = [n for n in self.left if n < number and self.keys[n] == self.keys[number]]
                assert not older, "an older message of its key is not done"
            self.held[number] = holder, self.now + 10.0
        self.look()
        if not self.settings.is_ordered and len(found) < min(count, holder.credit - mine):
            assert not set(self.left) - set(self.held) - set(self.waits) - set(self.dying), "one was ready"

    @precondition(lambda self: self.holders and self.next > 1)
    @rule(data=st.data(), what=st.sampled_from(["acknowledge", "reject", "reject later", "extend"]))
    def answer(self, data: st.DataObject, what: str) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        number = data.draw(st.integers(1, self.next - 1))
        delay = 4.0 if what == "reject later" else 0.0
        if what == "acknowledge":
            strangers = self.state.acknowledge(holder, ids(number), self.now)
        elif what == "extend":
            strangers = self.state.extend(holder, ids(number), 20.0, self.now)
        else:
            strangers = self.state.reject(holder, ids(number), delay, self.now)
        self.pass_time()
        is_mine = number in self.held and self.held[number][0] is holder
        assert (strangers == []) is is_mine
        if is_mine:
            if what == "acknowledge":
                self.finish(number)
            elif what == "extend":
                self.held[number] = holder, self.now + 20.0
            else:
                self.fail(number, delay)
        self.look()

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        holder = self.holders.pop(data.draw(st.integers(0, len(self.holders) - 1)))
        self.state.leave(holder, self.now)
        self.pass_time()
        for number in [number for number, (by, _) in self.held.items() if by is holder]:
            self.fail(number, 0.0)
        self.look()

    @rule(seconds=st.sampled_from([1.0, 4.0, 10.0, 25.0]))
    def wait(self, seconds: float) -> None:
        at = self.state.next_at
        times = [until for _, until in self.held.values()] + list(self.waits.values())
        assert at == min(times, default=None)
        self.now += seconds
        self.state.advance(self.now)
        self.pass_time()
        self.look()

    @precondition(lambda self: self.dying)
    @rule(is_buried=st.booleans())
    def bury(self, is_buried: bool) -> None:
        number, entry = self.dying.popitem()
        if is_buried:
            self.state.buried([entry])  # type: ignore[list-item]
            self.finish(number)
        else:
            self.state.unburied([entry], 2.0, self.now)  # type: ignore[list-item]
            self.waits[number] = self.now + 2.0
        self.look()

    # The list

    def pass_time(self) -> None:
        for number, (_, until) in list(self.held.items()):
            if until <= self.now:
                self.fail(number, 0.0)
        for number, until in list(self.waits.items()):
            if until <= self.now:
                del self.waits[number]

    def fail(self, number: int, delay: float) -> None:
        del self.held[number]
        self.left[number] += 1
        if 0 < self.settings.tries_max <= self.left[number]:
            self.dying[number] = None
        elif delay:
            self.waits[number] = self.now + delay

    def finish(self, number: int) -> None:
        self.held.pop(number, None)
        del self.left[number]
        self.done.append(number)

    def look(self) -> None:
        effects = self.state.drain()
        self.tokens.update(effects.tokens)
        for entry in effects.dead:
            number = entry.message.id.number
            assert 0 < self.settings.tries_max <= self.left[number]
            self.waits.pop(number, None)
            self.dying[number] = entry
        for each, tries in effects.failed.items():
            assert tries == self.left.get(each.number, 0)

    @invariant()
    def every_message_is_somewhere_once(self) -> None:
        assert len(self.state) == len(self.left)
        assert self.state.in_flight == len(self.held)
        assert all(self.tokens[number] == 0 for number in self.left)

    def teardown(self) -> None:
        """A consumer that answers everything gets all that is left."""
        if not hasattr(self, "state"):
            return
        for holder in self.holders:
            self.state.leave(holder, self.now)
        last = self.state.join(1000)
        for _ in range(1000):
            if not len(self.state):
                break
            self.now += 30.0
            found = self.state.take(last, 1000, self.now)
            self.state.acknowledge(last, [each.id for each in found], self.now)
            effects = self.state.drain()
            self.tokens.update(effects.tokens)
            dead = [*effects.dead, *(entry for entry in self.dying.values() if entry is not None)]
            self.dying = {}
            self.state.buried(dead)  # type: ignore[arg-type]
            self.tokens.update(self.state.drain().tokens)
        assert len(self.state) == 0, "a message is lost"
        self.tokens.update(self.state.drain().tokens)
        assert self.tokens == dict.fromkeys(range(1, self.next), 1), "each is acknowledged once"


TestAgreesWithAList = AgreesWithAList.TestCase
TestAgreesWithAList.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_a_take_is_bounded_in_bytes_and_one_message_always_fits() -> None:
    state = ChannelState(USUAL)
    for number, size in enumerate((50, 50, 500, 10), 1):
        state.arrived(Delivered(MessageId("t", number), bytes(size), 1, 0), number, 0.0)
    each = FIXED_BYTES
    assert state.size == 610 + 4 * each
    holder = state.join(10)
    assert numbers(state.take(holder, 10, 0.0, 100 + 2 * each)) == [1, 2]
    assert numbers(state.take(holder, 10, 0.0, 1)) == [3]
    assert numbers(state.take(holder, 10, 0.0, 1)) == [4]
    state.acknowledge(holder, ids(1, 3), 0.0)
    assert state.size == 60 + 2 * each
    state.leave(holder, 0.0)
    assert state.size == 60 + 2 * each
    state.forget()
    assert state.size == 0
