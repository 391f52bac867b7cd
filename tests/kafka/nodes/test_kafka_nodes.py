"""Nodes as Kafka's brokers: who they are, who leads what, and who coordinates groups."""

from __future__ import annotations

from rumq.cluster.control.records import View
from rumq.kafka.nodes import kafka_nodes
from rumq.kafka.nodes.kafka_nodes import NOBODY, KafkaNode, KafkaNodes, numbers_of
from tests.kafka.nodes.views import NAMES, node, shard, view


def nodes(seen: View | None = None, name: str = "n1") -> KafkaNodes:
    found = KafkaNodes(name, ["main", "two"])
    if seen is not None:
        found.take(seen)
    return found


def test_a_node_has_the_same_number_everywhere_whoever_else_is_there() -> None:
    alone = nodes()
    assert alone.own_number == nodes(view()).own_number == nodes(view(own="n2"), "n2").serving[0].number
    assert nodes(view(node("n1"), node("n7"))).own_number == alone.own_number
    assert len({each.number for each in nodes(view()).serving}) == 3
    assert all(0 <= each.number < 1 << 31 for each in nodes(view()).serving)


def test_names_that_fall_together_are_told_apart() -> None:
    kafka_nodes_mask, kafka_nodes.NUMBER_MASK = kafka_nodes.NUMBER_MASK, 3
    try:
        assert sorted(numbers_of({"a", "b", "c", "d"}).values()) == [0, 1, 2, 3]
    finally:
        kafka_nodes.NUMBER_MASK = kafka_nodes_mask


def test_nodes_whose_kafka_server_does_not_run_are_not_told() -> None:
    seen = view(node("n1"), node("n2", kafka=""), node("n3", kafka="[::1]:9093"))
    found = nodes(seen)
    assert [(each.name, each.host, each.port) for each in found.serving] == [
        ("n1", "n1.example", 9092),
        ("n3", "::1", 9093),
    ]
    assert found.leader_of("main", 1) == NOBODY and found.leader_of("main", 2) == found.serving[1].number


def test_partitions_are_led_where_their_shard_is() -> None:
    """As the shards themselves deal them out: in the order of streams, one after the other."""
    found = nodes(view())
    number = {each.name: each.number for each in found.serving}
    led = [found.leader_of(stream, at) for stream, count in (("main", 4), ("two", 2)) for at in range(count)]
    assert led == [number[name] for name in ("n1", "n2", "n3", "n1", "n2", "n3")]
    assert (found.partitions_of("main"), found.partitions_of("other")) == (4, 0)
    assert found.leader_of("other", 0) == nodes().leader_of("main", 0) == NOBODY
    assert nodes(view(layout={"two": 2})).leader_of("two", 0) == NOBODY, "where the streams before end is not known"


def test_copies_are_told_of_nodes_that_have_them() -> None:
    seen = view(shards=[shard("n1", ("n1", "n3")), shard("n2"), shard("n3")])
    found = nodes(seen)
    names = {each.number: each.name for each in found.serving}
    assert [names[each] for each in found.holders_of("main", 0)] == ["n1", "n3"]
    assert nodes().holders_of("main", 0) == []


def test_the_leader_of_shard_0_coordinates() -> None:
    found = nodes(view(leaders=("n2", "n1", "n3")))
    assert found.coordinator == KafkaNode(numbers_of({"n2"})["n2"], "n2", "n2.example", 9092)
    assert not found.leads_here and nodes(view(leaders=("n2",), own="n2"), "n2").leads_here
    assert found.coordinator_name == "n2"
    unknown = nodes(view(leaders=("",)))
    assert unknown.coordinator is None and unknown.coordinator_name == "" and not unknown.leads_here
    assert nodes().coordinator is None and nodes().unable == []


def test_a_coordinator_without_a_lease_is_told_as_it_was_seen() -> None:
    """The control plane alone does not see it: it leads, until another one does."""
    seen = view(node("n2"), node("n3"), leaders=("n1",), own="n2", unseen=[node("n1")])
    found = nodes(seen, "n2").coordinator
    assert found is not None and found.name == "n1"


def test_nodes_of_a_version_before_that_may_lead_are_named() -> None:
    assert nodes(view(node("n1"), node("n2", keeps=False), node("n3"))).unable == ["n2"]
    without = view(node("n1"), node("n2", keeps=False), shards=[shard("n1", ("n1", "n3"))])
    assert nodes(without).unable == [], "it has no copy of shard 0"
    assert NAMES == ("n1", "n2", "n3")
