"""The agent: what it tells the processes of its node, and what it does when the control plane is away or wrong."""

import trio

from rumq.cluster.agent.messages import Claim, Claimed, Seen
from rumq.cluster.control.records import ShardRecord, Versioned
from tests.cluster.agent.world import Node, World, in_world, received


def claim_of(view_shard: Versioned, leader: str, claim: str) -> Claim:
    held = view_shard.record
    record = ShardRecord(epoch=held.epoch + 1, leader=leader, claim=claim, replicas=held.replicas)
    return Claim(1, 0, view_shard.revision, record)


async def claimed_by(node: Node, claim: str) -> list[object]:
    link = node.link()
    [seen] = await received(link)
    assert isinstance(seen, Seen)
    link.send(claim_of(seen.view.shards[0], node.identity.id, claim))
    messages = list(await received(link))
    link.close()
    return messages


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
async def test_a_claim_is_answered_and_seen_everywhere(world: World) -> None:
    first, second, _ = await world.three()
    watcher = second.link("edge", -1)
    await received(watcher)
    [seen, claimed] = sorted(
        await claimed_by(first, "mine"), key=lambda each: type(each).__name__, reverse=True
    )
    assert isinstance(claimed, Claimed) and claimed.won and claimed.known
    assert claimed.now is not None and claimed.now.record.leader == first.identity.id
    assert isinstance(seen, Seen) and seen.view.shards[0] == claimed.now
    told = (await received(watcher))[-1]
    assert isinstance(told, Seen) and told.view.shards[0] == claimed.now


@in_world
async def test_of_two_claims_of_one_revision_one_wins(world: World) -> None:
    first, second, _ = await world.three()
    links = [first.link(), second.link()]
    view = await first.view()
    for link, node in zip(links, (first, second), strict=True):
        await received(link)
        link.send(claim_of(view.shards[0], node.identity.id, node.settings.node))
    answers = [message for link in links for message in await received(link) if isinstance(message, Claimed)]
    assert sorted(each.won for each in answers) == [False, True]
    assert answers[0].now == answers[1].now


@in_world
async def test_without_the_control_plane_the_last_view_stays_and_says_so(world: World) -> None:
    first, *_ = await world.three()
    before = await first.view()
    first.plane.is_unreachable = True
    await trio.sleep(10)
    view = await first.view()
    assert not view.is_current
    assert view.shards == before.shards and [each.id for each in view.nodes] == [
        each.id for each in before.nodes
    ]
    assert len(world.named("cluster.etcd_lost")) == 1
    assert [each.name for each in world.store.snapshot().nodes] == ["n2", "n3"]  # its lease has expired

    first.plane.is_unreachable = False
    await trio.sleep(3)
    view = await first.view()
    assert view.is_current and [each.name for each in view.nodes] == ["n1", "n2", "n3"]
    assert len(world.named("cluster.etcd_back")) == 1
