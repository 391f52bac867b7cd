"""The view of a cluster as a node's processes are shown it, whatever the control plane loses or forgets."""

import trio

from rumq.cluster.control.agent_messages import Claimed
from tests.cluster.agent.world import Node, World, claimed_by, in_world


@in_world
async def test_without_the_control_plane_the_last_view_stays_and_says_so(world: World) -> None:
    first, *_ = await world.three()
    before = await first.view()
    first.plane.is_unreachable = True
    await trio.sleep(10)
    view = await first.view()
    assert not view.is_current
    assert view.shards == before.shards and [each.id for each in view.nodes] == [each.id for each in before.nodes]
    assert len(world.named("cluster.etcd_lost")) == 1
    assert [each.name for each in world.store.snapshot().nodes] == ["n2", "n3"]  # its lease has expired

    first.plane.is_unreachable = False
    await trio.sleep(3)
    view = await first.view()
    assert view.is_current and [each.name for each in view.nodes] == ["n1", "n2", "n3"]
    assert len(world.named("cluster.etcd_back")) == 1


@in_world
async def test_what_a_deaf_watch_does_not_tell_is_listed_within_10_seconds(world: World) -> None:
    first, second, _ = await world.three()
    second.plane.is_deaf = True
    await claimed_by(first, "mine")
    assert (await second.view()).shards[0].record.leader == ""
    await trio.sleep(10.5)
    assert (await second.view()).shards[0].record.leader == first.identity.id


@in_world
async def test_a_stale_read_takes_nothing_back_and_alarms_nobody(world: World) -> None:
    first, *_ = await world.three()
    old = world.store.snapshot()
    await claimed_by(first, "mine")
    first.plane.stale = old
    first.agent.views.list_soon()
    await trio.sleep(1)
    assert (await first.view()).shards[0].record.claim == "mine"
    first.plane.stale = None
    await trio.sleep(10)
    assert not world.named("cluster.epoch_back")


@in_world
async def test_a_restored_etcd_gets_a_newer_record_and_never_an_older_one(world: World) -> None:
    first, *_ = await world.three()
    old = world.store.snapshot()
    await claimed_by(first, "mine")
    world.store.restore(old)
    await trio.sleep(15)
    view = await first.view()
    assert view.epochs_back == [0] and view.shards[0].record.leader == first.identity.id
    told = [each for each in world.named("cluster.epoch_back") if each["shard"] == 0]
    assert len(told) == 3 and (told[0]["epoch"], told[0]["seen"]) == (0, 1)  # once by each node

    messages = await claimed_by(first, "again")
    assert [each.won for each in messages if isinstance(each, Claimed)] == [True]
    await trio.sleep(1)
    view = await first.view()
    record = view.shards[0].record
    assert view.epochs_back == [] and (record.claim, record.epoch) == ("again", 2)


@in_world
async def test_an_emptied_control_plane_is_told_and_no_cluster_begins_in_it(world: World) -> None:
    first, *_ = await world.three()
    shards = (await first.view()).shards
    world.store.cluster = None
    world.store.shards = {}
    await trio.sleep(15)
    assert len(world.named("cluster.record_lost")) == 3
    view = await first.view()
    assert not view.is_current and view.shards == shards
    assert not world.store.shards


@in_world
async def test_a_clock_that_is_off_is_told_once(world: World) -> None:
    first = await world.node("n1")
    second = Node(world, "n2")
    second.clock_ahead_us = 61_000_000
    await second.start()
    await trio.sleep(60)
    first_sees, second_sees = first.identity.id, second.identity.id
    told = {str(each["node"]): each["seconds"] for each in world.named("cluster.clock_off")}
    assert len(world.named("cluster.clock_off")) == 1 and told == {second_sees: 61.0}
    assert first_sees not in told  # a record may be some seconds old, so less than 75 behind is in order
