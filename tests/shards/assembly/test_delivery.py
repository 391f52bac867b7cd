"""Every effect of the router has its part."""

from typing import get_args

from router.effects import Deliver, Effect
from tests.faults.shard import Shard


def test_every_effect_of_the_router_is_carried_out_by_some_part(shard: Shard) -> None:
    """One without would be a KeyError in the turn in which it first happens."""
    effects = shard.parts.turn.steps.effects
    assert {*effects._handlers, *([Deliver] if effects._fan_out is not None else [])} == {*get_args(Effect)}
