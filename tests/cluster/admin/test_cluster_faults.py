"""What an operator of a cluster should act on is said with the way out."""

from rumq.cluster.admin.cluster_faults import faults
from tests.cluster.admin.world import node, record, status_of, view_of

WHOLE = record("a", "a", "b", "c")


def test_nothing_is_wrong_with_a_cluster_that_is_whole() -> None:
    assert list(faults(status_of(view_of([node("a"), node("b"), node("c")], WHOLE)))) == []


def test_a_lost_copy_a_lost_majority_and_a_lost_leader_are_told() -> None:
    (copy,) = faults(status_of(view_of([node("a"), node("b")], WHOLE)))
    assert "c#0 of its replicas is gone" in copy and "cluster move 0 --from c" in copy
    (majority,) = faults(status_of(view_of([node("a")], WHOLE)))
    assert "2 of 3 replicas are gone" in majority and "force-leader --help" in majority
    told = list(faults(status_of(view_of([node("b"), node("c")], WHOLE))))
    assert "has no leader that lives" in told[-1]


def test_a_control_plane_that_does_not_answer_is_told() -> None:
    nodes = [node("a"), node("b"), node("c")]
    (away,) = faults(status_of(view_of(nodes, WHOLE, is_current=False)))
    assert "no leader can change" in away
    (never,) = faults(status_of(None))
    assert "cluster.etcd" in never
