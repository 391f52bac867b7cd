"""A node keeps its record in the control plane alive, and asks for little."""

import trio

from tests.cluster.agent.world import World, in_world


@in_world
async def test_a_node_whose_record_has_vanished_announces_itself_at_once(world: World) -> None:
    """Others do not reach it meanwhile: a leader has no address of this follower, an edge none of this leader."""
    first, second, _ = await world.three()
    await trio.sleep(1.5)
    del world.store.announced["n2"]  # though its lease lives
    world.store.changed()
    await trio.sleep(0.5)
    assert [each.name for each in (await first.view()).nodes] == ["n1", "n2", "n3"]
    asked = second.plane.requests
    await trio.sleep(20)
    assert second.plane.requests - asked < 100, "it does not go on with it"
