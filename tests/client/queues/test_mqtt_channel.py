"""A consumer over MQTT: a member of a shared subscription that acknowledges one by one; by script, and real brokers."""

import pytest
import trio

from rumq.client import Client, connect, connect_over
from rumq.client.queues.mqtt_channel import parse_channel, root_of
from rumq.mqtt.packets import Disconnect, Puback, Publish, Suback, Subscribe, SubscriptionRequest
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, Peer, simulated
from tests.client.queues.queue_broker import QueueBroker, until


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
        with pytest.raises(ValueError, match=r"MQTT can only acknowledge: .* gateway="):
            first.reject()
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


def test_dead_letters_have_topics_of_their_own() -> None:
    assert root_of("news") == "$queues/news/" and root_of("news.dead") == "$queues/$dead/news/"


def test_consumers_over_mqtt_share_with_those_of_the_gateway(broker: QueueBroker) -> None:
    """What one holds and does not acknowledge is given to the other when it ends."""
    found: list[tuple[str | None, bytes]] = []

    async def main() -> None:
        async with connect(*broker.broker.address) as plain, broker.client() as client:
            await client.queue("mixed").create()
            await client.queue("mixed").create_channel("m")
            async with plain.channel("Mixed/M", credit=4) as over_mqtt:
                await client.queue("mixed").push("first", topic="Sport", key="k", headers=[("a", "b")])
                [first] = await over_mqtt.receive_batch()
                assert (first.topic, first.payload, first.key, first.headers) == ("sport", b"first", "k", (("a", "b"),))
                first.acknowledge()
                for number in range(4):
                    await client.queue("mixed").push(b"%d" % number)
                held = [await anext(aiter(over_mqtt)) for _ in range(4)]
                over_mqtt.acknowledge(held[1:2])
            async with client.channel("mixed/m") as channel, trio.open_nursery() as nursery:

                @nursery.start_soon
                async def consume() -> None:
                    async for message in channel:
                        found.append((message.topic, message.payload))
                        message.acknowledge()

                await client.queue("mixed").push("last")
                await until(lambda: (None, b"last") in found)
                nursery.cancel_scope.cancel()

    trio.run(main)
    # MQTT acknowledges in order: number 1 waited for number 0, so all four came again.
    assert sorted(payload for _, payload in found) == [b"0", b"1", b"2", b"3", b"last"]


def test_a_channel_is_made_through_the_gateway_only(broker: QueueBroker) -> None:
    async def main() -> None:
        async with connect(*broker.broker.address) as client:
            with pytest.raises(ValueError, match="gateway='http"):
                client.channel("news/made", create=True)
            with pytest.raises(ValueError, match="gateway='http"):
                client.queue("news")

    trio.run(main)
