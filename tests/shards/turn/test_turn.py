"""What an answer on one connection means for another, whatever shards their clients live in: docs/guarantees.md."""

from collections.abc import Iterator

import pytest

from tests.broker_process import Rumqd
from tests.conformance.peer import Peer

ROUNDS = 20  # with client ids that lead to each pair of shards


@pytest.fixture(scope="module", params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    broker = Rumqd(tmp_path_factory.mktemp("broker") / "data", "--set", f"shards.count={request.param}")
    broker.start()
    yield broker
    broker.end()


@pytest.fixture(params=range(ROUNDS))
def pair(request: pytest.FixtureRequest, broker: Rumqd) -> Iterator[tuple[Peer, Peer, str]]:
    """A publisher, a subscriber, and a topic of theirs alone."""
    with Peer(broker.address) as publisher, Peer(broker.address) as subscriber:
        publisher.connect(f"publisher-{request.param}")
        subscriber.connect(f"subscriber-{request.param}")
        yield publisher, subscriber, f"{request.node.name}/{request.param}"


@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_acknowledged_before_a_subscribe_does_not_come(
    pair: tuple[Peer, Peer, str], qos: int
) -> None:
    publisher, subscriber, topic = pair
    publisher.publish(topic, b"before", qos)
    subscriber.subscribe(topic, qos=qos)
    publisher.publish(topic, b"after", qos)
    assert subscriber.payloads(1) == [b"after"]
    subscriber.expect_silence()


def test_what_is_published_after_suback_comes(pair: tuple[Peer, Peer, str]) -> None:
    """At any QoS."""
    publisher, subscriber, topic = pair
    subscriber.subscribe(topic)
    publisher.publish(topic, b"after")
    assert subscriber.payloads(1) == [b"after"]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_retained_message_that_was_acknowledged_is_there_for_a_subscribe(
    pair: tuple[Peer, Peer, str], qos: int
) -> None:
    publisher, subscriber, topic = pair
    publisher.publish(topic, b"kept", qos, retain=True)
    subscriber.subscribe(topic)
    message = subscriber.message()
    assert (message.payload, message.retain) == (b"kept", True)


def test_what_is_published_after_unsuback_does_not_come(pair: tuple[Peer, Peer, str]) -> None:
    publisher, subscriber, topic = pair
    subscriber.subscribe(topic)
    subscriber.unsubscribe(topic)
    publisher.publish(topic, b"after", 1)
    subscriber.expect_silence()
