"""Topics as numbers. MQTT 5.0, 3.3.2.3.4."""

import pytest
import trio

from rumq.client import Outgoing, Refused, connect_over
from rumq.mqtt.packets import Connack, Puback, Publish
from rumq.mqtt.properties import Properties
from tests.client.fake_broker import FakeBroker, simulated
from tests.client.meeting import connected

TWO = Connack(properties=Properties(topic_alias_maximum=2))


@simulated
@pytest.mark.parametrize(("maximum", "wanted", "aliased"), [(2, 9, 2), (9, 1, 1), (0, 9, 0), (9, 0, 0)])
async def test_the_first_topics_get_aliases_as_many_as_both_sides_want(maximum: int, wanted: int, aliased: int) -> None:
    connack = Connack(properties=Properties(topic_alias_maximum=maximum))
    async with connected(connack, topic_aliases=wanted) as (client, peer):
        await client.publish_batch([Outgoing(topic, b"") for topic in "abc" * 2])
        packets = await peer.receive_all()
        first = [(packet.topic, packet.properties.get("topic_alias")) for packet in packets[:3]]
        again = [(packet.topic, packet.properties.get("topic_alias")) for packet in packets[3:]]
        numbers = [*range(1, aliased + 1), *[None] * (3 - aliased)]
        assert first == list(zip("abc", numbers, strict=True))
        assert again == [("" if number else topic, number) for topic, number in first]


@simulated
async def test_aliases_end_with_their_connection() -> None:
    """Also of a message that is sent again."""
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def publish() -> None:
            async with connect_over(broker.open_stream, topic_aliases=2, reconnect=True) as client:
                for payload in (b"1", b"2"):
                    await client.publish("a", payload, qos=1)
            nursery.cancel_scope.cancel()

        peer, _ = await broker.accept(TWO)
        await peer.receive()
        await peer.send(Puback(1))
        assert (await peer.receive()).topic == ""
        await peer.hang_up()
        peer, _ = await broker.accept(TWO)
        assert await peer.receive() == Publish("a", b"2", 1, packet_id=2)
        await peer.send(Puback(2))


@simulated
async def test_an_alias_that_was_never_sent_is_not_used() -> None:
    connack = Connack(properties=Properties(topic_alias_maximum=1, maximum_packet_size=50))
    async with connected(connack, topic_aliases=1) as (client, peer):
        with pytest.raises(Refused):
            await client.publish("a", b"x" * 100)
        await client.publish("a", b"")
        assert await peer.receive() == Publish("a", b"", properties=Properties(topic_alias=1))
