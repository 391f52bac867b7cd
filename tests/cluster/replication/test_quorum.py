"""Majorities of one set of replicas, and of two while members change."""

from hypothesis import given
from hypothesis import strategies as st

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication.quorum import committed_lsn, copies_lsn, has_quorum, majority_of

NAMES = [f"n{number}" for number in range(7)]
GROUPS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True)
SYNCED = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9))


def record(replicas: list[str], old: list[str] | None = None) -> ShardRecord:
    return ShardRecord(epoch=1, leader="n0", claim="c", replicas=replicas, old_replicas=old, learners=["n6"])


@given(GROUPS, st.none() | GROUPS, st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)))
def test_two_majorities_share_a_node(replicas: list[str], old: list[str] | None, a: set[str], b: set[str]) -> None:
    shard = record(replicas, old)
    if has_quorum(shard, a) and has_quorum(shard, b):
        assert a & b & set(replicas)
        assert old is None or a & b & set(old)


@given(GROUPS, st.none() | GROUPS, SYNCED)
def test_committed_is_the_highest_lsn_that_a_majority_has(
    replicas: list[str], old: list[str] | None, synced: dict[str, int]
) -> None:
    shard = record(replicas, old)
    lsn = committed_lsn(shard, synced)
    assert lsn == 0 or has_quorum(shard, [node for node, end in synced.items() if end >= lsn])
    assert not has_quorum(shard, [node for node, end in synced.items() if end > lsn])


def test_half_of_an_even_number_is_no_majority() -> None:
    assert not has_quorum(record(["n0", "n1", "n2", "n3"]), ["n0", "n1"])
    assert has_quorum(record(["n0", "n1", "n2", "n3"]), ["n0", "n1", "n3"])


def test_a_learner_has_no_vote() -> None:
    assert not has_quorum(record(["n0", "n1", "n2"]), ["n0", "n6"])


@given(SYNCED, st.integers(1, 5))
def test_so_many_copies_have_what_comes_before_that_lsn(synced: dict[str, int], count: int) -> None:
    lsn = copies_lsn(count, synced)
    assert not lsn or sum(each >= lsn for each in synced.values()) >= count
    assert sum(each >= lsn + 1 for each in synced.values()) < count


def test_a_majority_is_more_than_half() -> None:
    assert [majority_of(count) for count in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]
