"""/readyz in a cluster: whether this node can serve clients, whatever happens to others. docs/guides/cluster.md"""

from __future__ import annotations

from typing import Any

import pytest
import trio

from rumq.admin import answers as a
from rumq.admin.cluster_rows import MissingShard, NodeRow, ShardCopies
from rumq.errors import RumqError
from rumq.gateway.handlers.health import HealthHandler


class Shards:
    """cluster: what the agent knows; missing: shards of the cluster that do not answer; fault: none does"""

    def __init__(self) -> None:
        self.cluster: a.Cluster | None = a.Cluster(
            enabled=True, node="n1", is_current=True, nodes=[row("n1"), row("n2")]
        )
        self.missing: list[MissingShard] = []
        self.fault: RumqError | None = None

    async def ask_here(self, operation: Any, request: Any) -> a.Shards:
        return a.Shards(shards=[])

    async def ask(self, operation: Any, request: Any) -> a.Shards:
        if self.fault is not None:
            raise self.fault
        return a.Shards(shards=[], missing=self.missing)

    async def maybe_cluster(self) -> a.Cluster | None:
        return self.cluster


def row(name: str, *, alive: bool = True, leaves: bool = False) -> NodeRow:
    return NodeRow(node=name, id=f"{name}#1", alive=alive, leaves=leaves, leads=[], copies=[])


@pytest.fixture
def shards() -> Shards:
    return Shards()


def problem(shards: Shards) -> str:
    asked: Any = shards
    return trio.run(HealthHandler(asked, lambda: 0.0).problem)


def test_a_node_that_leads_nothing_is_ready_and_one_alone_too(shards: Shards) -> None:
    assert problem(shards) == ""
    shards.cluster = None
    assert problem(shards) == ""


def test_a_drained_node_is_not_ready_and_the_others_are(shards: Shards) -> None:
    assert shards.cluster is not None
    shards.cluster.nodes = [row("n1"), row("n2", leaves=True), row("n3", alive=False)]
    assert problem(shards) == ""
    shards.cluster.nodes = [row("n1", leaves=True)]
    assert "drained" in problem(shards)


def test_a_node_whose_cluster_has_not_begun_is_not_ready(shards: Shards) -> None:
    """It accepts clients, and can serve none."""
    assert shards.cluster is not None
    shards.cluster.shards = [
        ShardCopies(shard=0, leader=None, epoch=0, members=[], state="no leader"),
        ShardCopies(shard=1, leader=None, epoch=0, members=[], state="no leader"),
    ]
    assert "has not begun" in problem(shards)
    shards.cluster.shards[0].members = ["n1", "n2", "n3"]
    assert problem(shards) == ""


def test_without_etcd_a_node_is_ready_while_it_reaches_all_leaders(shards: Shards) -> None:
    assert shards.cluster is not None
    shards.cluster.is_current = False
    assert problem(shards) == ""
    shards.missing = [MissingShard(shard=2, why="no route")]
    assert problem(shards) == "the control plane does not answer, and the leaders of shards 2 neither"
    shards.fault = RumqError("shard 0 does not answer: no route")
    assert "shard 0 does not answer" in problem(shards)


def test_with_etcd_a_shard_without_a_leader_turns_no_node_away(shards: Shards) -> None:
    """Else a balancer would take all of them out for as long as a leader is chosen."""
    shards.missing = [MissingShard(shard=0, why="no leader")]
    assert problem(shards) == ""
