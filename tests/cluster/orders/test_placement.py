"""Which nodes have copies of a shard, and who leads it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.cluster.control.records import NodeRecord, ShardRecord
from rumq.cluster.orders.placement import (
    Move,
    Replacement,
    by_zone,
    due_replacements,
    first_replicas,
    leader_moves,
    maybe_replacement,
    replaced,
)
from tests.cluster.agent.world import node_record


def nodes(zones: str, leaves: str = "") -> list[NodeRecord]:
    """One node for each letter: its zone. leaves: numbers of nodes"""
    return [node_record(f"n{i}", id=f"n{i}", zone=zone, leaves=str(i) in leaves) for i, zone in enumerate(zones)]


def shard(replicas: str, leader: str = "", **values: object) -> ShardRecord:
    """replicas: numbers of nodes"""
    ids = [f"n{each}" for each in replicas]
    return ShardRecord(epoch=1, leader=leader and f"n{leader}", claim="c", replicas=ids, **values)  # type: ignore[arg-type]


@given(zones=st.text("abc", min_size=3, max_size=9), shards=st.integers(1, 12), count=st.sampled_from([1, 3]))
def test_first_copies_are_on_different_nodes_and_in_as_many_zones_as_there_are(
    zones: str, shards: int, count: int
) -> None:
    ordered = by_zone(nodes(zones))
    zone_of = {node.id: node.zone for node in ordered}
    for number in range(shards):
        chosen = first_replicas(number, ordered, count)
        assert len(set(chosen)) == count
        assert len({zone_of[each] for each in chosen}) == min(count, len(set(zones)))


@given(size=st.integers(3, 9), rounds=st.integers(1, 3))
def test_every_node_is_preferred_as_leader_by_as_many_shards(size: int, rounds: int) -> None:
    ordered = by_zone(nodes("abc" * 3)[:size])
    preferred = Counter(first_replicas(number, ordered, 3)[0] for number in range(size * rounds))
    assert set(preferred.values()) == {rounds} and len(preferred) == size


@pytest.mark.parametrize(
    ("zones", "leaves", "load", "to"),
    [
        ("abcc", "", {}, "n3"),
        ("abcca", "", {}, "n3"),  # the zone of the node that is gone has no copy left
        ("abccc", "", {"n3": 2}, "n4"),
        ("abccc", "3", {"n4": 9}, "n4"),
        ("abc", "", {}, None),
    ],
)
def test_a_copy_is_replaced_in_its_zone_where_there_is_room(
    zones: str, leaves: str, load: dict[str, int], to: str | None
) -> None:
    alive = [node for node in nodes(zones, leaves) if node.id != "n2"]
    assert maybe_replacement(shard("012"), "n2", alive, load) == to


def test_a_node_that_is_gone_for_long_is_replaced_shard_by_shard() -> None:
    alive = [node for node in nodes("abcde") if node.id != "n2"]
    records = [shard("012"), shard("201"), shard("034")]
    gone = {"n2": 100.0}
    assert due_replacements(records, alive, gone, 1899.0, 1800.0) == []
    due = due_replacements(records, alive, gone, 1900.0, 1800.0)
    assert due == [Replacement(0, "n2", "n3"), Replacement(1, "n2", "n4")]
    assert replaced(records[1], due[1]) == ["n4", "n0", "n1"]


def test_members_do_not_change_twice_at_once_nor_without_a_majority() -> None:
    alive = [node for node in nodes("abcde") if node.id != "n2"]
    gone = {"n2": 0.0, "n1": 0.0}
    assert due_replacements([shard("012", old_replicas=["n0", "n1"])], alive, gone, 1e6, 1800.0) == []
    assert due_replacements([shard("012")], alive[:1] + alive[2:], gone, 1e6, 1800.0) == []
    assert due_replacements([shard("012")], alive, {}, 1e6, 1800.0) == []  # nobody knows since when


def test_leaders_move_until_all_nodes_lead_as_many() -> None:
    records = [shard("012", "0") for _ in range(6)]
    moves = leader_moves(records, nodes("abc"))
    assert Counter(move.to for move in moves) == {"n1": 2, "n2": 2} and len({move.shard for move in moves}) == 4
    after = [shard("012", dict(moves).get(i, "n0")[1:]) for i in range(6)]
    assert leader_moves(after, nodes("abc")) == []


def test_a_node_that_leaves_leads_nothing_and_gets_nothing() -> None:
    records = [shard("012", "0"), shard("120", "1"), shard("201", "2")]
    moves = leader_moves(records, nodes("abc", leaves="0"))
    assert moves == [Move(0, "n1")]


def test_leaders_move_by_weight_and_only_to_nodes_with_a_copy() -> None:
    records = [shard("012", "0"), shard("012", "0"), shard("0", "0")]
    moves = leader_moves(records, nodes("abc"), {0: 10.0, 1: 1.0, 2: 5.0})
    assert [move.shard for move in moves] == [0, 1] and moves[0].to != moves[1].to
    assert leader_moves([shard("0", "0"), shard("0", "0")], nodes("abc")) == []
    assert leader_moves([shard("012", "9")], nodes("abc")) == []  # its leader is dead: that is for an election


@given(
    leaders=st.lists(st.tuples(st.sampled_from("0123"), st.floats(0.1, 100)), min_size=1, max_size=12),
    leaves=st.sampled_from(["", "0", "12"]),
)
def test_moves_never_make_it_worse(leaders: list[tuple[str, float]], leaves: str) -> None:
    records = [shard("0123", leader) for leader, _ in leaders]
    weights = {number: weight for number, (_, weight) in enumerate(leaders)}
    everybody = nodes("abcd", leaves)
    moves = dict(leader_moves(records, everybody, weights))

    def spread(moved: dict[int, str]) -> float:
        staying = {node.id: 0.0 for node in everybody if not node.leaves}
        for number, record in enumerate(records):
            node = moved.get(number, record.leader)
            if node in staying:
                staying[node] += weights[number]
        return max(staying.values())

    assert not any(to[1:] in leaves for to in moves.values())
    if not leaves:
        assert spread(moves) <= spread({}) + 1e-6
