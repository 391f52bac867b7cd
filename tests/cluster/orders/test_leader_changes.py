"""Changes of leaders are counted once each, and told from those that the leader asked for."""

from rumq.cluster.control.records import HANDED_OVER
from rumq.cluster.orders.leader_changes import LeaderChanges
from tests.cluster.admin.world import record, view_of


def test_a_new_leader_of_a_higher_epoch_counts_once() -> None:
    changes = LeaderChanges()
    for shard in (
        record("", "a", "b", epoch=0),
        record("a", "a", "b"),  # the first one
        record("a", "a", "b"),
        record("a", "a", "b", epoch=2),  # it has changed its members
        record("b", "a", "b", epoch=3),
        record("a", "a", "b", epoch=2),  # an older view
        record("b", "a", "b", epoch=3),
    ):
        changes.note(view_of([], shard))
    assert dict(changes.failovers) == {0: 1} and not changes.hand_overs


def test_a_successor_that_was_asked_for_is_a_hand_over() -> None:
    changes = LeaderChanges()
    changes.note(view_of([], record("a", "a", "b"), record("a", "a", "b")))
    changes.note(view_of([], record("a", "a", "b"), record("b", "a", "b", epoch=2, claim=f"{HANDED_OVER}1f")))
    assert dict(changes.hand_overs) == {1: 1} and not changes.failovers
