"""Refusals of one address are reported one by one at first, then summed."""

from collections.abc import Callable
from typing import Any

from rumq.shards.clients.refusal_summary import TOLD_MAX, RefusalSummary


class World:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.waiting: list[Callable[[], None]] = []
        self.summary = RefusalSummary(
            lambda name, **fields: self.events.append((name, fields)),
            lambda seconds, call: self.waiting.append(call),
        )


def test_a_flood_from_one_address_is_summed_and_others_are_not_hidden() -> None:
    world = World()
    for _ in range(TOLD_MAX + 7):
        world.summary.tell("client.refused", peer="10.0.0.1:5")
    world.summary.tell("client.refused", peer="10.0.0.2:5")
    world.summary.tell("shard.lost", shard=1)
    assert len(world.events) == TOLD_MAX + 2
    world.waiting.pop()()
    name, fields = world.events[-1]
    assert name == "refusals.summed" and (fields["address"], fields["count"]) == ("10.0.0.1", 7)
    world.summary.tell("client.refused", peer="10.0.0.1:5")
    assert world.events[-1][0] == "client.refused", "a new window"
