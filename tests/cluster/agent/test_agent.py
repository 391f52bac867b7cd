"""The agent: what it tells the processes of its node, and what it does when the control plane is away or wrong."""

import trio

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.connections.agent_socket import AgentSocket
from rumq.cluster.control.agent_messages import AgentStatus, AskStatus, Claim, Claimed, DrainNode, OrderResult, Seen
from rumq.cluster.control.records import ShardRecord, Versioned
from tests.cluster.admin.world import term
from tests.cluster.agent.world import Node, World, in_world, received, settle


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
    [seen, claimed] = sorted(await claimed_by(first, "mine"), key=lambda each: type(each).__name__, reverse=True)
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
    assert view.shards == before.shards and [each.id for each in view.nodes] == [each.id for each in before.nodes]
    assert len(world.named("cluster.etcd_lost")) == 1
    assert [each.name for each in world.store.snapshot().nodes] == ["n2", "n3"]  # its lease has expired

    first.plane.is_unreachable = False
    await trio.sleep(3)
    view = await first.view()
    assert view.is_current and [each.name for each in view.nodes] == ["n1", "n2", "n3"]
    assert len(world.named("cluster.etcd_back")) == 1


@in_world
async def test_a_claim_whose_answer_is_lost_is_settled_by_its_claim_id(world: World) -> None:
    first, *_ = await world.three()
    first.plane.answers_lost = 1
    link = first.link()
    [seen] = await received(link)
    assert isinstance(seen, Seen)
    link.send(claim_of(seen.view.shards[0], first.identity.id, "mine"))
    await trio.sleep(1)
    [claimed] = [each for each in await received(link) if isinstance(each, Claimed)]
    assert claimed.won and claimed.known and claimed.now is not None and claimed.now.record.claim == "mine"


@in_world
async def test_a_claim_that_may_still_arrive_is_unknown_and_later_seen(world: World) -> None:
    first, *_ = await world.three()
    first.plane.changes_late = 1
    link = first.link()
    [seen] = await received(link)
    assert isinstance(seen, Seen)
    link.send(claim_of(seen.view.shards[0], first.identity.id, "late"))
    await trio.sleep(2)
    [claimed] = await received(link)
    assert isinstance(claimed, Claimed) and not claimed.won and not claimed.known and claimed.now is None
    [arrives] = first.plane.late
    arrives()
    told = (await received(link))[-1]
    assert isinstance(told, Seen) and told.view.shards[0].record.claim == "late"


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
    first.agent._hinted()
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


@in_world
async def test_a_node_that_is_removed_leaves_in_every_view_until_it_is_taken_back(world: World) -> None:
    """By an order that any node takes; also one that is gone."""
    first, second, third = await world.three()
    link = first.link("operator", -1)
    await received(link)

    async def leaving(leave: DrainNode, asked: AgentSocket) -> list[str]:
        asked.send(leave)
        assert OrderResult(leave.request) in await received(asked)
        return [each.name for each in (await second.view()).nodes if each.leaves]

    assert await leaving(DrainNode(1, True, third.identity.id), link) == ["n3"]
    assert (await first.view()).removed == [third.identity.id]
    await third.stop()
    third = await world.node("n3")
    assert [each.name for each in (await first.view()).nodes if each.leaves] == ["n3"], "a restart forgets nothing"
    assert await leaving(DrainNode(2, False, third.identity.id), link) == []
    assert await leaving(DrainNode(3, True, third.identity.id), link) == ["n3"]
    own = third.link("operator", -1)
    await received(own)
    assert await leaving(DrainNode(4, False), own) == [], "drain --back at the node itself"
    for each in (link, own):
        each.close()


@in_world
async def test_the_status_has_what_leaders_say_and_how_often_processes_have_ended(world: World) -> None:
    node, *_ = await world.three()
    said = [term("n1", "n1")]

    async def ask_terms() -> list[TermRow]:
        return said

    async def status() -> AgentStatus:
        link = node.link("operator", -1)
        link.send(AskStatus(1))
        found = [each for each in await received(link) if isinstance(each, AgentStatus)]
        link.close()
        await settle()
        return found[0]

    assert (await status()).terms is None
    node.agent.ask_terms = ask_terms
    for _ in range(3):
        node.link().close()
        await settle()
    found = await status()
    assert found.terms == said and found.ends == {0: 3}
    await trio.sleep(61)
    assert (await status()).ends == {0: 0}
