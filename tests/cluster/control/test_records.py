"""Who votes and who gets the log, by a shard's record; names of nodes."""

from rumq.cluster.control.records import ShardRecord, Versioned, View
from tests.cluster.node.world import node_record


def test_old_members_vote_until_the_change_is_settled_and_learners_never() -> None:
    record = ShardRecord(
        epoch=1, leader="a", claim="c", replicas=["a", "d"], old_replicas=["a", "b"], learners=["e", "b"]
    )
    assert record.voters == ["a", "d", "b"] and record.members == ["a", "d", "b", "e"]
    settled = ShardRecord(epoch=1, leader="a", claim="c", replicas=["a", "d"], learners=["e"])
    assert settled.voters == ["a", "d"] and settled.members == ["a", "d", "e"]


def test_a_node_is_found_by_its_id_and_not_by_its_name() -> None:
    node = node_record("n1#aa")
    shards: list[Versioned] = []
    view = View(cluster="c", node="n1#aa", replicas=1, nodes=[node], shards=shards, is_current=True)
    assert node.name == "n1" and view.node_of("n1#aa") is node and view.node_of("n1#bb") is None
