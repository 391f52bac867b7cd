"""The agent: what it tells the processes of its node, and what it does when the control plane is away or wrong."""

import trio

from rumq.cluster.control.agent_messages import Claimed
from tests.cluster.agent.world import World, claimed_by, in_world, received


@in_world
async def test_three_nodes_form_a_cluster_and_each_process_is_told(world: World) -> None:
    first, second, third = await world.three()
    for node in (first, second, third):
        view = await node.view()
        assert view.is_current and view.node == node.identity.id
        assert [each.name for each in view.nodes] == ["n1", "n2", "n3"]
        assert [each.record.replicas[0].partition("#")[0] for each in view.shards] == ["n1", "n2", "n3"]
        assert all(each.record.epoch == 0 and each.record.leader == "" for each in view.shards)
    assert len(world.named("cluster.formed")) == 1


@in_world
async def test_a_node_that_is_started_again_remembers_the_epochs(world: World) -> None:
    first, *_ = await world.three()
    old = world.store.snapshot()
    await claimed_by(first, "mine")
    await first.stop()
    world.store.restore(old)
    again = await world.node("n1", incarnation="second")
    await trio.sleep(5)
    view = await again.view()
    assert view.epochs_back == [0] and view.shards[0].record.epoch == 1
    [claimed] = [each for each in await claimed_by(again, "x") if isinstance(each, Claimed)]
    assert claimed.won and claimed.now is not None and claimed.now.record.epoch == 2


@in_world
async def test_an_idle_agent_asks_less_than_5_times_a_second(world: World) -> None:
    first, *_ = await world.three()
    link = first.link()
    await received(link)
    before = first.plane.requests
    await trio.sleep(100)
    assert (first.plane.requests - before) / 100 < 2
    assert not await received(link)  # and nothing is told where nothing changes


# Operators
