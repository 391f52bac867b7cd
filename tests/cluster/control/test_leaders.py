"""Where a shard is reached, and what its next leader would lose, by a view."""

import msgspec
import pytest

from rumq.cluster.control.leaders import (
    epoch_of,
    is_replaced,
    leader_name,
    leader_of,
    leads_here,
    maybe_leader,
    unable_nodes,
)
from rumq.cluster.control.records import ShardRecord, Versioned, View
from tests.cluster.edge.world import node
from tests.kafka.nodes.views import node as kafka_node
from tests.kafka.nodes.views import view as kafka_view

HERE, THERE = "n1#aaaaaaaa", "n2#bbbbbbbb"


def view(leader: str) -> View:
    record = ShardRecord(epoch=7, leader=leader, claim="", replicas=[HERE, THERE])
    shards = [Versioned(record, 3)] * 2
    return View(cluster="c1", node=HERE, replicas=2, nodes=[node(THERE, 7000)], shards=shards, is_current=True)


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
    assert leader_of(without, 0) == (without.shards[0].record.leader if without and without.shards else "")


def test_a_leader_is_replaced_by_another_node_not_by_its_own_next_epoch() -> None:
    led = maybe_leader(view(THERE), 0)
    assert led is not None
    before = led._replace(epoch=6)
    assert not is_replaced(view(THERE), led) and not is_replaced(view(THERE), before)
    assert is_replaced(view(HERE), before) and is_replaced(view(""), before)
    assert not is_replaced(view(HERE), led._replace(epoch=8)) and not is_replaced(None, led)


def test_a_node_whose_version_would_lose_what_is_kept_is_named_if_it_may_lead_next() -> None:
    able, old, stranger = kafka_node("n1"), kafka_node("n2", keeps=False), kafka_node("n4", keeps=False)
    seen = kafka_view(able, old, stranger, leaders=("n1", "n2"))
    assert unable_nodes(seen, 0) == ["n2"] and unable_nodes(seen, 2) == [] == unable_nodes(None, 0)
    assert leads_here(seen, 0) and not leads_here(seen, 1) and not leads_here(None, 0)
    assert (leader_name(seen, 1), leader_name(seen, 2), leader_name(None, 0)) == ("n2", "", "")
