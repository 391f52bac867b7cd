"""What processes ask of their agent: claims, which are answered once, what leaders say, and to leave."""

import trio

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.connections.agent_socket import AgentSocket
from rumq.cluster.control.agent_messages import AgentStatus, AskStatus, Claimed, DrainNode, OrderResult, Seen
from tests.cluster.admin.world import term
from tests.cluster.agent.world import World, claim_of, claimed_by, in_world, received, settle


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
    node.agent.requests.ask_terms = ask_terms
    for _ in range(3):
        node.link().close()
        await settle()
    found = await status()
    assert found.terms == said and found.ends == {0: 3}
    await trio.sleep(61)
    assert (await status()).ends == {0: 0}
