"""The link between the agent and another process, which never waits."""

import os
from pathlib import Path

import pytest
import trio

from rumq.cluster.connections.agent_socket import QUEUE_MAX, AgentSocket
from rumq.cluster.control.agent_messages import (
    AgentStatus,
    AskStatus,
    DrainNode,
    Here,
    Order,
    OrderResult,
    Report,
    Seen,
)
from tests.cluster.agent.world import World, in_world, received, settle


def test_without_an_agent_there_is_no_link(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        AgentSocket(str(tmp_path / "agent.sock"), "shard", 0)


@in_world
async def test_a_path_may_be_longer_than_a_unix_address(world: World) -> None:
    node = await world.node("n1", folder="a" * 60 + "/" + "b" * 60, replicas=1)
    assert len(str(node.data)) > 107
    assert (await node.view()).is_current


@in_world
async def test_a_link_whose_agent_ends_says_so_once_all_is_read(world: World) -> None:
    node = await world.node("n1")
    link = node.link()
    assert isinstance((await received(link))[0], Seen)
    await node.stop()
    with pytest.raises(OSError, match="closed the link"):
        await received(link)
    link.send(OrderResult(1))  # nobody hears it, and nothing is raised
    link.close()
    again = await world.node("n1")
    assert (await again.view()).node == node.identity.id  # a socket that was left behind is no hindrance


@in_world
async def test_whoever_does_not_begin_with_here_or_speaks_nonsense_is_cut_off(world: World) -> None:
    node = await world.node("n1")
    link = node.link()
    await received(link)
    link._outbox += b"\xff" * 64
    link.flush()
    with pytest.raises(OSError):
        await received(link)
    assert (await node.view()).is_current


@in_world
async def test_an_order_goes_to_the_shards_process_and_its_answer_back(world: World) -> None:
    node = await world.node("n1", replicas=1)
    operator, other, shard = node.link("operator", -1), node.link("operator", -1), node.link("shard", 2)
    for link in (operator, other, shard):
        await received(link)
    for link in (operator, other):
        link.send(Order(7, "hand-over", 2, to="n2#00"))
    orders = [each for each in await received(shard) if isinstance(each, Order)]
    assert [each.to for each in orders] == ["n2#00"] * 2 and len({each.request for each in orders}) == 2
    shard.send(OrderResult(orders[0].request, "no"))
    assert [await received(operator), await received(other)] in (
        [[OrderResult(7, "no")], []],
        [[], [OrderResult(7, "no")]],
    )
    shard.close()
    await settle()
    answers = await received(operator) + await received(other)
    assert len(answers) == 1 and isinstance(answers[0], OrderResult) and "ended before it answered" in answers[0].why
    operator.send(Order(8, "hand-over", 2, to="n2#00"))
    [done] = await received(operator)
    assert isinstance(done, OrderResult) and done.request == 8 and "no process of shard 2" in done.why


@in_world
async def test_an_operator_is_told_everything(world: World) -> None:
    node = await world.node("n1", replicas=1)
    shard, operator = node.link("shard", 1), node.link("operator", -1)
    await received(operator)
    shard.send(Report(1, "leader", 4, {"committed": {"main/g1/p1": 7}}))
    await settle()
    operator.send(AskStatus(3))
    [status] = await received(operator)
    assert isinstance(status, AgentStatus) and status.request == 3 and status.view == await node.view()
    assert [(each.shard, each.role, each.epoch) for each in status.reports] == [(1, "leader", 4)]
    assert Here("shard", 1, os.getpid()) in status.processes
    assert status.health.members[0].why == "" and status.lost_seconds == 0 and status.requests > 0
    shard.close()
    node.plane.is_unreachable = True
    await trio.sleep(5)
    await received(operator)
    operator.send(AskStatus(4))
    [status] = await received(operator)
    assert isinstance(status, AgentStatus) and status.reports == [] and 1 < status.lost_seconds < 10


@in_world
async def test_a_node_that_leaves_says_so_at_once(world: World) -> None:
    node = await world.node("n1", replicas=1)
    operator = node.link("operator", -1)
    await received(operator)
    operator.send(DrainNode(1, leaves=True))
    answers = await received(operator)
    assert OrderResult(1) in answers
    assert (await node.view()).nodes[0].leaves and world.store.snapshot().nodes[0].leaves


@in_world
async def test_a_drained_node_is_drained_after_its_restart_until_it_is_taken_back(world: World) -> None:
    """Drained, restarted, and only then taken back: it gets nothing to lead meanwhile."""

    async def ordered(leave: DrainNode) -> None:
        operator = node.link("operator", -1)
        await received(operator)
        operator.send(leave)
        assert OrderResult(leave.request) in await received(operator)
        operator.close()

    node = await world.node("n1", replicas=1)
    await ordered(DrainNode(1, leaves=True))
    for leaves in (True, False):
        await node.stop()
        node = await world.node("n1", replicas=1)
        assert [each.leaves for each in (await node.view()).nodes] == [leaves]
        await ordered(DrainNode(2, leaves=False))


@in_world
async def test_a_process_that_does_not_read_is_cut_off(world: World) -> None:
    """A stopped process must not fill the agent's memory."""
    node = await world.node("n1", replicas=1)
    link = node.link()
    await settle()
    process = node.agent.server.maybe_shard(0)
    assert process is not None
    for number in range(QUEUE_MAX * 20):  # more than the socket holds
        process.send(Order(number, "hand-over", 0, to="x" * 200))
        if not number % 50:
            await settle()
            if process not in node.agent.server.processes:
                break
    assert number < QUEUE_MAX * 10 and node.agent.server.processes == []
    with pytest.raises(OSError):
        await read_to_end(link)
    assert (await node.view()).is_current


async def read_to_end(link: AgentSocket) -> None:
    while True:
        await received(link)
