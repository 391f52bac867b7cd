"""Where a shard is reached, by a view."""

import msgspec
import pytest

from rumq.cluster.connections.leaders import epoch_of, maybe_leader
from rumq.cluster.control.records import ShardRecord, Versioned, View
from tests.cluster.edge.world import node

HERE, THERE = "n1#aaaaaaaa", "n2#bbbbbbbb"


def view(leader: str) -> View:
    record = ShardRecord(epoch=7, leader=leader, claim="", replicas=[HERE, THERE])
    shards = [Versioned(record, 3)] * 2
    return View(
        cluster="c1", node=HERE, replicas=2, nodes=[node(THERE, 7000)], shards=shards, is_current=True
    )


def test_each_shard_has_a_port_of_its_own() -> None:
    found = [maybe_leader(view(THERE), shard) for shard in range(2)]
    assert [(each.port, each.is_here, each.epoch) for each in found if each] == [
        (7001, False, 7),
        (7002, False, 7),
    ]


def test_a_leader_on_this_node_needs_no_record_of_the_node() -> None:
    """Its lease may have run out: the process serves all the same."""
    found = maybe_leader(view(HERE), 0)
    assert found is not None and found.is_here


@pytest.mark.parametrize(
    "without", [None, view(""), view("n3#cccccccc"), msgspec.structs.replace(view(THERE), shards=[])]
)
def test_there_may_be_none(without: View | None) -> None:
    assert maybe_leader(without, 0) is None
    assert epoch_of(without, 0) == (7 if without is not None and without.shards else 0)
