"""Which nodes a connection may go by when the direct way is cut.

The way itself: tests/shards/links/test_relay_callers.py."""

from rumq.cluster.connections.detour import detours
from rumq.cluster.control.leaders import maybe_leader
from rumq.cluster.control.records import ShardRecord, Versioned, View
from tests.shards.links.world import node


def view(*leaders: str) -> View:
    records = [
        Versioned(ShardRecord(epoch=1, leader=each, claim="", replicas=["n1", "n2", "n3", "n4"]), 1) for each in leaders
    ]
    nodes = [node(name, 7000) for name in ("n1", "n2", "n3", "n4")]
    return View(cluster="c", node="n1", replicas=3, nodes=nodes, shards=records, is_current=True)


def test_it_goes_by_the_leader_of_another_shard_on_a_third_node() -> None:
    seen = view("n2", "n1", "n3", "n3", "n4")
    leader = maybe_leader(seen, 0)
    assert leader is not None
    assert [(each.node, each.shard) for each in detours(seen, leader)] == [("n3", 2), ("n4", 4)]


def test_there_is_none_where_only_the_two_nodes_lead() -> None:
    seen = view("n2", "n1", "n2", "")
    leader = maybe_leader(seen, 0)
    assert leader is not None and detours(seen, leader) == []
    assert detours(None, leader) == []
