"""The word that a replay has ended: a message of its own behind the records, and of nobody who did not ask."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import LASTING, messages


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


def replaying(shard: Shard, *pairs: tuple[str, str], qos: int = 0) -> Client:
    client = Client(shard, "reader", 5)
    properties = [(Prop.USER_PROPERTY, pair) for pair in (("rumq-from", "earliest"), *pairs)]
    client.say(wire.subscribe(1, [("t/#", qos)], properties=[*properties, (Prop.SUBSCRIPTION_ID, 7)]))
    return client


@pytest.mark.parametrize("qos", [0, 1])
def test_it_comes_behind_the_records(shard: Shard, qos: int) -> None:
    publisher = Client(shard, "p", 5)
    for number in range(5):
        publisher.say(wire.publish(f"t/{number}", b"%d" % number, 1, number + 1))
    client = replaying(shard, ("rumq-end", "yes"), qos=qos)
    for _ in range(3):  # a turn to deliver, one to learn what was refused
        shard.settle()
    *records, end = messages(client)
    assert [record.payload for record in records] == [b"0", b"1", b"2", b"3", b"4"]
    assert (end.topic, end.payload, end.qos, end.get(Prop.SUBSCRIPTION_ID)) == ("$log/end", b"t/#", 0, 7)
    publisher.say(wire.publish("t/live", b"5", 1, 9))
    assert [message.topic for message in messages(client)] == ["t/live"]


def test_who_did_not_ask_is_not_told(shard: Shard) -> None:
    Client(shard, "p", 5).say(wire.publish("t/0", b"0", 1, 1))
    assert [message.topic for message in messages(replaying(shard))] == ["t/0"]


def test_a_session_that_is_kept_is_refused(shard: Shard) -> None:
    client = Client(shard, "reader", 5, **LASTING)
    pairs = [("rumq-from", "earliest"), ("rumq-end", "yes")]
    client.say(wire.subscribe(1, [("t/#", 0)], properties=[(Prop.USER_PROPERTY, pair) for pair in pairs]))
    (suback,) = client.take()
    assert suback.kind is Kind.SUBACK and suback.codes == [0x8F]
