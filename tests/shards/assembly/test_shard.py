"""One shard, put together: a message goes the whole way. Two that are linked: tests/shards/assembly/test_cluster.py."""

from tests.commitlog.records import everything
from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.faults.shard import Client, Shard


def test_a_message_is_stored_delivered_and_acknowledged_in_this_order(shard: Shard) -> None:
    reader, publisher = Client(shard, "r", 5), Client(shard, "p", 5)
    reader.say(wire.subscribe(1, [("t", 1)]))
    publisher.say(wire.publish("t", b"x", 1, 7))
    assert [seen.payload for seen in everything(shard.store.partitions[1])[0]] == [b"x"]
    assert [(each.kind, each.packet_id) for each in publisher.take()] == [(Kind.PUBACK, 7)]
    assert [each.payload for each in reader.take() if each.kind is Kind.PUBLISH] == [b"x"]
