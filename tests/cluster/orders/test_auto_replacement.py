"""Copies of nodes that are gone for long go to others, by order of the agent beside the leader."""

import trio

from rumq.cluster.control.agent_messages import Claim, Order
from rumq.cluster.control.records import ShardRecord
from tests.cluster.agent.world import World, in_world, received, settle


@in_world
async def test_the_agent_beside_the_leader_orders_a_replacement_once_it_is_time(world: World) -> None:
    first, second, third = [await world.node(f"n{number}", shards=1, replace_seconds=1800.0) for number in (1, 2, 3)]
    fourth = await world.node("n4", shards=1, replace_seconds=1800.0)
    leader, other = first.link("shard", 0), second.link("shard", 0)
    await settle()
    view = await first.view()
    held = view.shards[0]
    record = ShardRecord(epoch=1, leader=first.identity.id, claim="c", replicas=held.record.replicas)
    leader.send(Claim(1, 0, held.revision, record))
    await received(leader)
    await third.die()
    await trio.sleep(1790)
    assert not [each for each in await received(leader) if isinstance(each, Order)]
    await trio.sleep(30)
    [order] = [each for each in await received(leader) if isinstance(each, Order)]
    wanted = [fourth.identity.id if each == third.identity.id else each for each in held.record.replicas]
    assert (order.what, order.shard, order.members) == ("members", 0, wanted)
    assert not [each for each in await received(other) if isinstance(each, Order)]
    [told] = world.named("cluster.replacing")
    assert (told["gone"], told["to"]) == (third.identity.id, fourth.identity.id)
    await trio.sleep(70)
    assert len([each for each in await received(leader) if isinstance(each, Order)]) == 1  # nothing changed: again
    first.plane.is_unreachable = True
    await trio.sleep(200)
    assert not [each for each in await received(leader) if isinstance(each, Order)]
