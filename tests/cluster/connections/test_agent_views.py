"""A process and the agent of its node: the Kafka server says where it is while it runs, and all see each view."""

from __future__ import annotations

import trio

from rumq.cluster.connections.agent_views import RETRY_SECONDS, AgentViews
from rumq.cluster.control.records import View
from tests.cluster.agent.world import World, in_world, settle


@in_world
async def test_a_node_is_announced_with_its_kafka_server_while_that_runs(world: World) -> None:
    first, second, _ = await world.three()
    seen: list[View] = []
    views = AgentViews(str(first.data), "kafka", seen.append, "n1.example:9092")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(views.run)
        await settle()
        assert {each.name: (each.kafka, each.keeps) for each in (await second.view()).nodes} == {
            "n1": ("n1.example:9092", True), "n2": ("", True), "n3": ("", True),
        }  # fmt: skip
        assert seen[-1].node_of(first.identity.id) is not None
        nursery.cancel_scope.cancel()
    await settle()
    assert [each.kafka for each in (await second.view()).nodes] == ["", "", ""]


@in_world
async def test_an_agent_that_comes_again_is_told_again(world: World) -> None:
    first, second, _ = await world.three()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(AgentViews(str(first.data), "kafka", lambda view: None, "n1.example:9092").run)
        nursery.start_soon(AgentViews(str(second.data), "bridges", lambda view: None).run)
        await settle()
        await first.stop()
        await world.node("n1")
        await trio.sleep(2 * RETRY_SECONDS)
        await settle()
        assert [each.kafka for each in (await second.view()).nodes] == ["n1.example:9092", "", ""]
        nursery.cancel_scope.cancel()
