"""How a cluster begins, and who may not be in it."""

import pytest
import trio

from rumq.cluster.agent.agent import Agent
from rumq.cluster.agent.cluster_check import check_cluster
from rumq.cluster.control.errors import ControlError, ControlRefused, NameTaken
from rumq.cluster.control.records import ClusterRecord
from tests.cluster.agent.world import Node, World, in_world


def names(ids: list[str]) -> list[str]:
    return [each.partition("#")[0] for each in ids]


async def refusal(node: Node) -> ControlError:
    """Why a node's agent ends."""
    agent = Agent(node.settings, node.identity, node.plane, node.clock_us)
    with trio.fail_after(100), pytest.raises(BaseExceptionGroup) as caught:
        await agent.run()
    fault: BaseException = caught.value
    while isinstance(fault, BaseExceptionGroup):
        [fault] = fault.exceptions
    assert isinstance(fault, ControlError)
    return fault


def prepared(world: World, name: str, **settings: object) -> Node:
    """A node whose agent has not been started."""
    from rumq.cluster.agent.node_identity import node_identity

    node = Node(world, name, **settings)
    node.identity = node_identity(node.data, "demo", name, has_log=bool(settings.get("has_log")))
    return node


@in_world
async def test_nothing_begins_before_as_many_nodes_live_as_there_are_copies(world: World) -> None:
    await world.node("n1")
    await world.node("n2")
    await trio.sleep(30)
    assert not world.store.shards
    await world.node("n3")
    assert sorted(world.store.shards) == [0, 1, 2]
    assert [sorted(names(each.record.replicas)) for each in world.store.shards.values()] == [["n1", "n2", "n3"]] * 3


@in_world
async def test_copies_are_spread_over_zones(world: World) -> None:
    for number, zone in enumerate("aaabbc"):
        await world.node(f"n{number}", zone=zone, shards=6)
    await trio.sleep(1)
    zone_of = {node.id: node.zone for node in world.store.snapshot().nodes}
    first = world.store.shards[0].record  # of the first three nodes, which were all there was
    assert len(world.store.shards) == 6 and {zone_of[each] for each in first.replicas} == {"a"}


@in_world
async def test_a_log_that_one_node_brings_is_the_clusters(world: World) -> None:
    first = await world.node("n1")
    second = await world.node("n2", has_log=True)
    await world.node("n3")
    for each in world.store.shards.values():
        assert names(each.record.replicas) == ["n2"] and sorted(names(each.record.learners)) == ["n1", "n3"]
    await trio.sleep(15)
    assert [node.has_log for node in world.store.snapshot().nodes] == [False] * 3  # it is everybody's now
    assert (await first.view()).shards == (await second.view()).shards


@in_world
async def test_of_several_logs_none_is_chosen(world: World) -> None:
    await world.node("n1", has_log=True)
    await world.node("n2", has_log=True)
    await world.node("n3")
    await trio.sleep(30)
    assert not world.store.shards
    [told] = world.named("cluster.several_logs")
    assert names(list(told["nodes"])) == ["n1", "n2"] and "empty data directories" in str(told["why"])  # type: ignore[call-overload]


@in_world
async def test_a_log_is_not_mixed_into_a_cluster_that_has_one(world: World) -> None:
    await world.three()
    fault = await refusal(prepared(world, "n4", has_log=True))
    assert isinstance(fault, ControlRefused) and "start with an empty data directory" in str(fault)


@in_world
async def test_a_shard_without_a_record_gets_one_later_too(world: World) -> None:
    """As after a crash in the middle of the formation."""
    await world.three()
    del world.store.shards[1]
    await trio.sleep(15)
    assert sorted(world.store.shards) == [0, 1, 2]


@in_world
async def test_two_nodes_of_one_name_are_told_apart(world: World) -> None:
    await world.three()
    fault = await refusal(prepared(world, "n2", folder="another", host="elsewhere", incarnation="other"))
    assert isinstance(fault, NameTaken)
    assert "'n2'" in str(fault) and "n2:7883" in str(fault) and "elsewhere:7883" in str(fault)
    assert [each.name for each in world.store.snapshot().nodes] == ["n1", "n2", "n3"]


@in_world
async def test_a_name_is_free_when_its_node_has_died(world: World) -> None:
    _, second, _ = await world.three()
    await second.die()
    replaced = await world.node("n2", folder="new disk", incarnation="second")
    await trio.sleep(4)
    assert replaced.identity.id in [each.id for each in world.store.snapshot().nodes]


@in_world
async def test_a_node_that_is_started_again_does_not_wait_for_its_old_lease(world: World) -> None:
    _, second, _ = await world.three()
    await second.die()
    again = await world.node("n2", incarnation="second")
    [node] = [each for each in world.store.snapshot().nodes if each.name == "n2"]
    assert (node.id, node.incarnation) == (second.identity.id, "second")
    assert again.identity.id == second.identity.id


@in_world
async def test_an_older_run_gives_way_to_a_newer_one_of_its_disk(world: World) -> None:
    """As when a volume is attached to another machine while the first one is cut off."""
    node = prepared(world, "n1", incarnation="older")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:

            async def newer() -> None:
                await trio.sleep(5)
                node.plane.is_unreachable = True
                await trio.sleep(5)
                other = Node(world, "n1", folder="copied", incarnation="newer")
                other.identity = node.identity
                other.agent = Agent(other.settings, other.identity, other.plane, other.clock_us)
                await world.nursery.start(other.agent.run)
                await trio.sleep(5)
                node.plane.is_unreachable = False

            nursery.start_soon(newer)
            assert isinstance(await refusal(node), NameTaken)
    [alive] = world.store.snapshot().nodes
    assert alive.incarnation == "newer"


@in_world
async def test_a_disk_of_another_cluster_is_refused(world: World) -> None:
    first, *_ = await world.three()
    await first.stop()
    assert world.store.cluster is not None
    world.store.cluster = ClusterRecord(
        **{
            **{key: getattr(world.store.cluster, key) for key in world.store.cluster.__struct_fields__},
            "id": "another",
        }
    )
    fault = await refusal(prepared(world, "n1"))
    assert isinstance(fault, ControlRefused)
    assert "node.json" in str(fault) and "id another" in str(fault) and "empty data directory" in str(fault)
    world.store.cluster = None
    assert "restore the snapshot" in str(await refusal(prepared(world, "n1")))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"shards": 4}, "set cluster.shards to 3"), ({"replicas": 5}, "set cluster.replicas to 3")],
)
@in_world
async def test_other_numbers_than_the_clusters_are_refused(world: World, wrong: dict[str, int], says: str) -> None:
    await world.node("n1")
    assert says in str(await refusal(prepared(world, "n2", **wrong)))


@in_world
async def test_a_version_that_is_too_old_is_refused(world: World) -> None:
    node = prepared(world, "n1")
    newer = ClusterRecord(id="x", shards=3, replicas=3, feature_level=99, created_us=0)
    with pytest.raises(ControlRefused, match="install the version that the other nodes have"):
        check_cluster(node.settings, newer)


# Partitions


@in_world
async def test_the_cluster_has_the_partitions_of_the_log_that_a_node_brings(world: World) -> None:
    first = await world.node("n1", partitions={"main": 3})
    await world.node("n2", has_log=True, partitions={"main": 1})
    await world.node("n3", partitions={"main": 3})
    assert world.store.layout == {"main": 1} and (await first.view()).layout == {"main": 1}


@in_world
async def test_new_nodes_must_have_the_same_partitions(world: World) -> None:
    await world.node("n1", partitions={"main": 3, "plant": 1})
    await world.node("n2", partitions={"main": 2})
    node = await world.node("n3", partitions={"main": 3, "plant": 1})
    await trio.sleep(30)
    assert not world.store.shards and not world.store.layout
    [told] = world.named("cluster.layouts_differ")
    assert "n2#" in str(told["why"]) and "main 3, plant 1" in str(told["why"])
    await node.stop()


@in_world
async def test_nodes_that_do_not_say_their_partitions_form_a_cluster_without_a_layout(world: World) -> None:
    """Of an older version. When those with votes say it, it is noted."""
    nodes = await world.three(partitions={})
    assert len(world.store.shards) == 3 and not world.store.layout
    for node in nodes:
        await node.stop()
    for name in ("n1", "n2"):
        await world.node(name, partitions={"main": 3})
    await trio.sleep(20)
    assert not world.store.layout, "the third has not said it"
    await world.node("n3", partitions={"main": 3})
    await trio.sleep(20)
    assert world.store.layout == {"main": 3}
