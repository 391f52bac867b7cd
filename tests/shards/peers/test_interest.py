"""Interest: a subscription is confirmed once every other shard forwards what its filter matches."""

from typing import Any

import pytest

from router.shard import ShardRouter
from rumq.shards.bus import messages as m
from rumq.shards.peers.interest import LOOK_SECONDS, LOOKS, Interest
from rumq.shards.peers.shared_groups import JournalBarrier, SharedGroups
from tests.shards.bus.world import Hand, Other


class World:
    def __init__(self, others: int = 2) -> None:
        self.hand, self.router = Hand(), ShardRouter([])
        self.others = {index: Other(index) for index in range(1, others + 1)}
        barrier = JournalBarrier(None, self.hand, lambda index: None)  # type: ignore[arg-type]
        groups = self.groups = SharedGroups(self.hand, self.hand, barrier, self.router, self.hand, {})
        self.interest = Interest(self.others, self.router, self.hand, self.hand, groups)
        self.calls: list[str] = []

    def then(self) -> None:
        self.calls.append("then")

    def answer_all(self) -> list[Any]:
        return [other.answer(m.Wanted(1)) for other in self.others.values()]


@pytest.fixture
def world() -> World:
    return World()


def test_a_filter_is_confirmed_once_every_shard_has_answered(world: World) -> None:
    assert not world.interest.confirm(["a/#"], world.then)
    world.others[1].answer(m.Wanted(1))
    assert not world.calls and "a/#" not in world.interest.confirmed
    world.others[2].answer(m.Wanted(1))
    assert world.calls == ["then"]
    assert world.interest.confirm(["a/#"], world.then), "nobody is asked again"


def test_alone_a_shard_asks_nobody() -> None:
    alone = World(others=0)
    assert alone.interest.confirm_subscriptions([("a", "a")], alone.then, publishers=True)


def test_a_shard_that_joins_meanwhile_is_told_of_filters_that_are_being_asked_for(world: World) -> None:
    world.interest.begin(wants_publishers=False)
    assert all(other.has_begun for other in world.others.values())
    world.interest.confirm(["b"], world.then)
    assert world.interest.filters() == ["b"]


def test_a_group_of_another_home_is_joined_there_first(world: World) -> None:
    assert not world.interest.confirm_subscriptions([("$share/g/t1", "t1")], world.then)
    ((question, _),) = world.others[1].asked
    assert question == m.ShareJoin(1, "$share/g/t1", "t1") and not world.others[2].asked
    world.others[1].answer(m.Wanted(1))
    assert world.calls == ["then"]


def test_groups_of_one_packet_stay_at_their_homes_until_the_last_is_there(world: World) -> None:
    """Its SUBACK waits for all of them; whatever is acknowledged after it is each group's."""
    keys = ["$share/g/t1", "$share/g/t2"]
    assert not world.interest.confirm_subscriptions([(key, key[-2:]) for key in keys], world.then)
    world.others[1].answer(m.Wanted(1))
    world.hand.step()
    assert not world.calls and not world.hand.said, "the first home is told nothing yet"
    world.others[2].answer(m.Wanted(1))
    assert world.calls == ["then"] and not world.hand.said
    world.hand.step()
    left = [(home, m.ShareWeight(key, key[-2:], 0)) for home, key in enumerate(keys, 1)]
    assert world.hand.said == left, "the client was gone"


class Link:
    def __init__(self) -> None:
        self.said: list[Any] = []

    def say(self, message: Any) -> None:
        self.said.append(message)


def test_a_filter_that_all_others_leave_is_forwarded_until_who_asked_for_it_has_it(world: World) -> None:
    """They leave while it is asked where the other shards stand, or while a group is joined: SUBACK asks no more."""
    world.interest.begin(wants_publishers=False)
    link = world.others[1].link = Link()  # type: ignore[assignment]
    changed = world.router.groups.local_filters.changed

    def others_leave() -> None:
        changed["a"] = None
        world.interest.changes()

    world.interest.confirm(["a"], lambda: None)
    world.answer_all()
    for asked in ([("a", "a")], [("a", "a"), ("$share/g/t1", "t1")]):
        world.interest.confirm_subscriptions(asked, world.then)
        others_leave()
        next_turn(world)
        world.others[2].answer(m.Wanted(1))
        others_leave()
        while world.others[1].asked:
            others_leave()
            world.others[1].answer(m.Wanted(1))
    assert world.calls == ["then", "then"] and not link.said
    world.interest.changes()
    assert link.said == [m.Unwant(["a"])], "the client was gone"


def test_publishers_are_asked_for_once_and_before_the_filters(world: World) -> None:
    assert not world.interest.confirm_subscriptions([("a", "a")], world.then, publishers=True)
    assert world.answer_all() == [m.WantPublishers(1), m.WantPublishers(1)]
    assert [type(question) for question in world.answer_all()] == [m.Want, m.Want]
    assert world.calls == ["then"] and world.interest.wants_publishers
    assert not world.interest.confirm_subscriptions([("a", "a")], world.then, publishers=True)
    next_turn(world)
    assert world.answer_all() == [m.Want(1, []), m.Want(1, [])], "neither is asked for again"


def next_turn(world: World) -> None:
    now = [call for seconds, call in world.hand.waiting if not seconds]
    world.hand.waiting = [(seconds, call) for seconds, call in world.hand.waiting if seconds]
    for call in now:
        call()


def test_a_filter_that_is_known_waits_until_the_others_have_said_where_they_stand(world: World) -> None:
    """A link that was cut just now has not brought what was acknowledged since: the retained messages would be old."""
    world.interest.confirm(["a"], lambda: None)
    world.answer_all()
    for _ in range(3):
        assert not world.interest.confirm_subscriptions([("a", "a")], world.then)
    assert not any(other.asked for other in world.others.values())
    next_turn(world)
    assert [len(other.asked) for other in world.others.values()] == [1, 1], "one question for all of a turn"
    world.others[1].answer(m.Wanted(1))
    assert not world.calls
    world.others[2].answer(m.Wanted(1))
    assert world.calls == ["then"] * 3


class Met:
    is_met = True


def look(world: World, seconds: float) -> None:
    """Time passes."""
    while seconds > 0:
        waiting, world.hand.waiting = world.hand.waiting, []
        for after, call in waiting:
            seconds -= after
            call()


def linked(world: World) -> None:
    for other in world.others.values():
        other.partitions, other.link = [Met()], object()  # type: ignore[assignment]


def test_a_shard_that_stays_away_is_not_waited_for(world: World) -> None:
    """It is told of the filter when it is back, with where to go on."""
    linked(world)
    world.interest.begin(wants_publishers=False)
    world.others[2].link = None
    world.interest.confirm(["a/#"], world.then)
    world.others[1].answer(m.Wanted(1))
    look(world, LOOK_SECONDS * (LOOKS - 1))
    assert not world.calls, "a leader that has died is soon replaced"
    look(world, LOOK_SECONDS)
    assert world.calls == ["then"] and world.interest.filters() == ["a/#"]
    world.interest.confirm(["b"], world.then)
    assert world.calls == ["then"]
    world.others[1].answer(m.Wanted(2))
    assert world.calls == ["then", "then"], "it is known to be away"
    world.others[2].answer(m.Wanted(1))
    world.others[2].answer(m.Wanted(2))
    assert world.calls == ["then", "then"], "late answers are nobody's"


@pytest.mark.parametrize("others", [1, 2])
def test_whoever_asks_for_filters_one_after_the_other_waits_once_for_a_shard_that_is_away(others: int) -> None:
    """A SUBSCRIBE of many filters asks for a few in a turn, and for the next ones when these are there."""
    world = World(others)
    linked(world)
    world.interest.begin(wants_publishers=False)
    world.others[others].link = None
    seconds = 0.0
    for number in range(50):
        assert not world.interest.confirm_subscriptions([(f"t/{number}", f"t/{number}")], world.then)
        if others == 2:
            world.others[1].answer(m.Wanted(number + 1))
        next_turn(world)
        while len(world.calls) <= number:
            look(world, LOOK_SECONDS)
            seconds += LOOK_SECONDS
    assert seconds == LOOK_SECONDS * LOOKS


def test_a_shard_that_is_there_or_was_never_met_is_waited_for(world: World) -> None:
    linked(world)
    world.others[2].link, world.others[2].partitions = None, [type("Unmet", (), {"is_met": False})]
    world.interest.confirm(["a/#"], world.then)
    look(world, LOOK_SECONDS * LOOKS * 2)
    assert not world.calls
    for other in world.others.values():
        other.answer(m.Wanted(1))
    assert world.calls == ["then"]


def test_a_shard_that_is_back_is_waited_for_again(world: World) -> None:
    linked(world)
    world.others[2].link = None
    world.interest.confirm(["a"], world.then)
    world.others[1].answer(m.Wanted(1))
    look(world, LOOK_SECONDS * LOOKS)
    world.others[2].link = object()  # type: ignore[assignment]
    look(world, LOOK_SECONDS)
    world.interest.confirm(["b"], world.then)
    world.others[1].answer(m.Wanted(2))
    look(world, LOOK_SECONDS * LOOKS)
    assert world.calls == ["then"]


def test_a_shard_that_is_back_counts_as_away_until_it_has_said_where_it_stands(world: World) -> None:
    """Whoever was not kept waiting for it is not told afterwards that it has been heard of: what is retained would be
    the message of the time when the link was cut."""
    linked(world)
    world.interest.begin(wants_publishers=False)
    world.interest.confirm(["a"], world.then)
    world.answer_all()
    world.others[2].link = None
    world.interest.confirm_subscriptions([("a", "a")], world.then)
    next_turn(world)
    world.others[1].answer(m.Wanted(2))
    look(world, LOOK_SECONDS * LOOKS)
    assert world.calls == ["then", "then"] and world.interest.is_away(2)
    world.others[2].link = object()  # type: ignore[assignment]
    look(world, LOOK_SECONDS)
    assert world.interest.is_away(2), "nothing has come from it"
    world.interest.confirm_subscriptions([("a", "a")], world.then)
    next_turn(world)
    world.others[1].answer(m.Wanted(3))
    assert world.calls == ["then", "then"], "it is there, so it is waited for"
    world.others[2].answer(m.Wanted(2))
    assert not world.interest.is_away(2)
    world.others[2].answer(m.Wanted(3))
    assert world.calls == ["then", "then", "then"]


def test_a_shard_that_has_only_named_its_publishers_has_not_said_where_it_stands(world: World) -> None:
    linked(world)
    world.others[2].link = None
    world.interest.confirm_subscriptions([("a", "a")], world.then, publishers=True)
    look(world, LOOK_SECONDS * LOOKS)
    world.others[2].link = object()  # type: ignore[assignment]
    assert world.others[2].answer(m.Wanted(1)) == m.WantPublishers(1)
    look(world, LOOK_SECONDS)
    assert world.interest.is_away(2)
