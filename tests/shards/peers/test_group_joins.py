"""A SUBSCRIBE waits for the homes of its shared groups, and not for one that stays away."""

import pytest

from rumq.shards.bus import messages as m
from rumq.shards.peers.interest import HOME_LOOKS, LOOK_SECONDS
from tests.shards.peers.test_interest import World, linked, look, next_turn


@pytest.fixture
def world() -> World:
    return World()


def test_a_group_whose_home_stays_away_keeps_no_other_filter_waiting(world: World) -> None:
    """It is refused; the group of the home that answers is served from SUBACK on."""
    linked(world)
    world.interest.begin(wants_publishers=False)
    there, away = "$share/g/t1", "$share/g/t2"
    refused: list[list[bool]] = []

    def then() -> None:
        refused.append([world.interest.is_home_away(key) for key in (there, away)])

    world.others[2].link = None
    assert not world.interest.confirm_subscriptions([(key, key[-2:]) for key in (there, away)], then)
    world.others[1].answer(m.Wanted(1))
    look(world, LOOK_SECONDS * (HOME_LOOKS - 1))
    assert not refused, "a SUBSCRIBE that nobody repeats is worth the wait"
    look(world, LOOK_SECONDS)
    assert refused == [[False, True]]
    world.hand.step()
    assert world.hand.said == [(1, m.ShareWeight(there, "t1", 0))], "the client was gone"
    assert not world.interest.is_home_away(away)
    assert not world.interest.confirm_subscriptions([(away, "t2")], then)
    next_turn(world)
    assert refused[1:] == [[False, True]], "it is known to be away"
    world.hand.step()
    world.others[2].link = object()  # type: ignore[assignment]
    assert not world.interest.confirm_subscriptions([(away, "t2")], then)
    for _ in range(2):
        world.others[2].answer(m.Wanted(1))
        assert len(world.hand.said) == 1 and len(refused) == 2, "somebody is about to join"
    world.others[2].answer(m.Wanted(1))
    assert refused[2:] == [[False, False]]
    world.hand.step()
    assert world.hand.said[1:] == [(2, m.ShareWeight(away, "t2", 0))], "once for all of them"
