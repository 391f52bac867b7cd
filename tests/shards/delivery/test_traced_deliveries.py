"""Deliveries of traced messages: only those that were handed over, each once."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client
from tests.shards.delivery.world import drain, messages, subscribed
from tests.tracing.world import CALLER, Traced, carrying, parent_of


@pytest.fixture
def shard() -> Iterator[Traced]:
    made = Traced(SimulatedFiles())
    made.trace()
    yield made
    made.end()


def test_what_a_full_socket_refuses_is_told_when_it_is_delivered(shard: Traced) -> None:
    reader = subscribed(shard, "r", "t")
    reader.room = 0
    Client(shard, "p", 5).say(wire.publish("t", b"x"))
    assert not messages(reader) and not shard.named("deliver")
    drain(reader)
    (message,) = messages(reader)
    assert parent_of(message) is not None
    assert len(shard.named("deliver")) <= 1


def test_what_a_subscriber_does_not_want_is_not_told(shard: Traced) -> None:
    """No Local, other topics, and packets that are too long for it."""
    publisher = Client(shard, "p", 5)
    publisher.say(wire.subscribe(1, [("t", 4)]))
    publisher.take()
    small = subscribed(shard, "small", "t", properties=[(Prop.MAXIMUM_PACKET_SIZE, 60)])
    other = subscribed(shard, "other", "u")
    publisher.say(wire.publish("t", b"x" * 50, properties=carrying(CALLER)))
    assert not [each for each in publisher.take() if each.kind is Kind.PUBLISH]
    assert not messages(small) and not messages(other) and not shard.named("deliver")


def test_a_window_that_is_full_tells_the_rest_once_it_is_delivered(shard: Traced) -> None:
    reader = subscribed(shard, "r", "t", options=1, properties=[(Prop.RECEIVE_MAXIMUM, 1)])
    Client(shard, "p", 5).say(wire.publish("t", b"1", 1, 1), wire.publish("t", b"2", 1, 2))
    (first,) = messages(reader)
    assert len(shard.named("deliver")) == 1
    reader.say(wire.ack(Kind.PUBACK, first.packet_id))
    (second,) = messages(reader)
    assert second.payload == b"2" and len(shard.named("settle")) == 1
