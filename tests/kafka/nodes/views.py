"""Views of a cluster of three nodes, as the agent shows them."""

from __future__ import annotations

from typing import Any

from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View

NAMES = ("n1", "n2", "n3")


def node(name: str, **values: Any) -> NodeRecord:
    given: dict[str, Any] = {
        "id": f"{name}#00", "host": name, "port": 7883, "mqtt": [], "zone": "", "incarnation": "a", "version": "1",
        "feature_level": 1, "has_log": False, "clock_us": 0, "kafka": f"{name}.example:9092", "keeps": True,
    }  # fmt: skip
    return NodeRecord(**(given | values))


def shard(leader: str, members: tuple[str, ...] = NAMES) -> Versioned:
    leader = f"{leader}#00" if leader else ""
    return Versioned(ShardRecord(epoch=1, leader=leader, claim="a", replicas=[f"{each}#00" for each in members]), 1)


def view(*nodes: NodeRecord, leaders: tuple[str, ...] = NAMES, own: str = "n1", **values: Any) -> View:
    """leaders: of shards 0, 1, ..."""
    given: dict[str, Any] = {
        "cluster": "id", "node": f"{own}#00", "replicas": 3, "nodes": list(nodes or map(node, NAMES)),
        "shards": [shard(each) for each in leaders], "is_current": True, "layout": {"main": 4, "two": 2},
    }  # fmt: skip
    return View(**(given | values))
