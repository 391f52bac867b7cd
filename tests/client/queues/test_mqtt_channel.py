"""A consumer of a channel: a member of its shared subscription that acknowledges one by one."""

import pytest
import trio

from rumq.client import Client, connect_over
from rumq.client.patterns.channel import parse_channel
from rumq.mqtt.packets import Disconnect, Puback, Publish, Suback, Subscribe, SubscriptionRequest
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, Peer, simulated


@pytest.mark.parametrize(
    ("name", "found"), [("News/Comments", ("news", "comments")), ("a/b", ("a", "b")), ("news", None), ("/b", None),
                        ("a/", None), ("a/b/c", None), ("+/b", None), ("a/#", None), ("$a/b", None)]
)  # fmt: skip
def test_a_name_is_label_and_channel(name: str, found: tuple[str, str] | None) -> None:
    if found is None:
        with pytest.raises(ValueError, match="LABEL/CHANNEL"):
            parse_channel(name)
    else:
        assert parse_channel(name) == found


async def consumer(broker: FakeBroker) -> Peer:
    """The connection of the channel itself, subscribed."""
    await broker.accept()
    peer, connect = await broker.accept()
    assert connect.clean_start and connect.properties["receive_maximum"] == 2
    assert await peer.receive() == Subscribe(1, (SubscriptionRequest("$share/comments/$queues/news/#", 1),))
    await peer.send(Suback(1, (Reason.GRANTED_QOS_1,)))
    return peer


async def consume(client: Client) -> None:
    async with client.channel("News/Comments", credit=2) as channel:
        [first, second] = [await anext(aiter(channel)) for _ in range(2)]
        assert (first.topic, first.payload, second.topic) == ("uk/1", b"a", "uk/2")
        second.acknowledge()
        first.acknowledge()
        [third] = await channel.receive_batch()
        assert third.payload == b"c"


@simulated
async def test_a_message_is_acknowledged_when_the_consumer_says_so() -> None:
    """The end of the consumer's session gives back what it has not acknowledged."""
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def client() -> None:
            async with connect_over(broker.open_stream, session_expiry=60) as client:
                await consume(client)
                nursery.cancel_scope.cancel()

        peer = await consumer(broker)
        for number, payload in ((1, b"a"), (2, b"b")):
            await peer.send(Publish(f"$queues/news/uk/{number}", payload, 1, packet_id=number))
        assert [await peer.receive(), await peer.receive()] == [Puback(1), Puback(2)]
        await peer.send(Publish("$queues/news/uk/3", b"c", 1, packet_id=3))
        assert await peer.receive() == Disconnect(properties=Properties(session_expiry_interval=0))
        await peer.hang_up()


@simulated
async def test_who_fails_vanishes_and_acknowledges_nothing() -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        async def fail(client: Client) -> None:
            async with client.channel("news/comments", credit=2) as channel:
                await channel.receive_batch()
                raise ZeroDivisionError

        @nursery.start_soon
        async def client() -> None:
            async with connect_over(broker.open_stream) as client:
                with pytest.raises(ZeroDivisionError):
                    await fail(client)
                await trio.sleep_forever()

        peer = await consumer(broker)
        await peer.send(Publish("$queues/news/uk/1", b"a", 1, packet_id=1))
        assert await peer.gone()
        nursery.cancel_scope.cancel()
