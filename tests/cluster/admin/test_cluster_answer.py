"""The answer to `cluster`: nodes, copies and states, as people call them."""

import pytest

from rumq.admin.cluster_rows import ShardState, TermRow
from rumq.cluster.admin.cluster_answer import NodeDisplayNames, cluster_answer
from rumq.cluster.control.records import Versioned
from rumq.cluster.orders.leader_changes import LeaderChanges
from tests.cluster.admin.world import node, record, status_of, term, view_of

NODES = [node("a"), node("b"), node("c", leaves=True)]


def test_nodes_shards_orders_and_the_control_plane_are_told() -> None:
    view = view_of(
        NODES,
        record("a", "a", "b", "c"),
        record("b", "a", "b", old_replicas=["b", "c"], learners=["d"]),
        here="b#0",
    )
    changes = LeaderChanges()
    changes.failovers[1] = 2
    found = cluster_answer("plant", status_of(view), 0.02, changes, {0: term("a", "a", "b")})
    assert (found.enabled, found.cluster, found.id, found.node, found.replicas) == (
        True,
        "plant",
        "c1",
        "b",
        3,
    )
    assert [(each.node, each.alive, each.leaves, each.leads, each.copies) for each in found.nodes] == [
        ("a", True, False, [0], [0, 1]), ("b", True, False, [1], [0, 1]), ("c", True, True, [], [0, 1]),
        ("d", False, False, [], [1]),
    ]  # fmt: skip
    first, second = found.shards
    assert (first.leader, first.members, first.in_sync, first.state) == (
        "a",
        ["a", "b", "c"],
        ["a", "b"],
        "behind",
    )
    assert first.behind_bytes == {"b": 0, "c": 512} and first.behind_records == {"b": 0, "c": 5}
    assert (second.members, second.learners, second.state, second.failovers) == (
        ["a", "b", "c"],
        ["d"],
        "unknown",
        2,
    )
    assert [(each.shard, each.order, each.nodes) for each in found.orders] == [
        (1, "fill", ["d"]), (1, "members", ["a", "b"]),
    ]  # fmt: skip
    assert found.control is not None and (found.control.renew_seconds, found.control.requests) == (0.02, 7)
    assert [(each.endpoint, each.answers, each.leads) for each in found.control.members] == [("e1", True, True)]


def test_a_node_that_has_not_met_its_cluster_says_so() -> None:
    found = cluster_answer("plant", status_of(None), 0.0, LeaderChanges(), {})
    assert found.enabled and not found.nodes and "has not answered since this node started" in found.wrong[0]


@pytest.mark.parametrize(
    ("shard", "told", "state"),
    [
        (record("a", "a", "b"), term("a", "a", "b"), "ok"),
        (record("a", "a", "b"), term("a", "a"), "behind"),
        (record("a", "a", "b"), term("a", "a", "b", is_open=False), "opening"),
        (record("a", "a", "b"), term("a", "a", has_quorum=False), "no quorum"),
        (record("a", "a", "b", learners=["c"]), term("a", "a", "b"), "changing"),
        (record("a", "a", "b"), None, "unknown"),
        (record("a", "a", "b", epoch=2), term("a", "a", "b"), "unknown"),  # of a leader that is deposed
        (record("x", "x", "b"), term("x", "x", "b"), "no leader"),
        (record("", "a", "b"), None, "no leader"),
    ],
)
def test_a_shard_has_a_state(shard: Versioned, told: TermRow | None, state: ShardState) -> None:
    terms = {} if told is None else {0: told}
    (found,) = cluster_answer("p", status_of(view_of(NODES, shard)), 0.0, LeaderChanges(), terms).shards
    assert found.state == state
    assert (found.leader is None) == (state == "no leader")
    assert bool(found.in_sync) == (state not in ("unknown", "no leader"))


def test_a_disk_that_was_replaced_is_told_from_the_new_one() -> None:
    view = view_of([node("a#1"), node("b")], record("b", "a#0", "a#1", "b", "x#1", "x#2", "y"))
    names = NodeDisplayNames(view)
    assert names.all(["a#0", "a#1", "b#0", "x#1", "x#2", "y#0"]) == ["a#0", "a", "b", "x#1", "x#2", "y"]
    assert names.gone == ["a#0", "x#1", "x#2", "y#0"]
    assert names.is_alive("a#1") and not names.is_alive("a#0") and not names.is_alive("")
