"""What a client subscribes to and receives, packet by packet, against a broker that does as the test says."""

from typing import Any

import pytest
import trio

from rumq.client import Refused, connect_over
from rumq.mqtt.packets import (
    Disconnect,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, simulated
from tests.client.meeting import connected, take


@simulated
async def test_a_subscription_is_granted_or_refused() -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:

        @nursery.start_soon
        async def broker() -> None:
            assert await peer.receive() == Subscribe(
                1, (SubscriptionRequest("a/#", 2, True, True, 1),), {"subscription_identifiers": [9]}
            )
            await peer.send(Suback(1, (Reason.GRANTED_QOS_1,)))
            await peer.receive()
            await peer.send(Suback(2, (Reason.NOT_AUTHORIZED,)))
            assert await peer.receive() == Unsubscribe(3, ("a/#",))
            await peer.send(Unsuback(3, (Reason.SUCCESS,)))

        granted = await client.subscribe(
            "a/#", qos=2, no_local=True, retain_as_published=True, retain_handling=1, identifier=9
        )
        assert granted == 1
        with pytest.raises(Refused, match="SUBSCRIBE to b: 0x87"):
            await client.subscribe("b")
        await client.unsubscribe("a/#")


@simulated
@pytest.mark.parametrize(
    ("version", "asked", "properties"),
    [(5, "a/#", {"user_properties": [("rumq-from", "-1h")]}), (4, "$log/-1h/a/#", {})],
)
async def test_a_subscription_may_begin_in_the_past(version: int, asked: str, properties: Any) -> None:
    async with connected(version=version) as (client, peer), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: client.subscribe("a/#", from_="-1h"))
        assert await peer.receive() == Subscribe(1, (SubscriptionRequest(asked),), properties)
        await peer.send(Suback(1, (Reason.GRANTED_QOS_0,)))


@simulated
async def test_a_replayed_message_says_where_it_stands() -> None:
    pairs = [("rumq-offset", "9"), ("rumq-offset", "7"), ("rumq-lsn", "x"), ("rumq-partition", "main/0")]
    async with connected() as (client, peer):
        await peer.send(Publish("a", b"", properties={"user_properties": [*pairs, ("rumq-time", "T")]}))
        [message] = await take(client, 1)
        # The publisher may have set such a property itself; the broker's is the last.
        assert (message.offset, message.lsn) == (7, None)
        assert (message.partition, message.time) == ("main/0", "T")


@simulated
async def test_a_message_is_acknowledged_when_the_next_is_asked_for() -> None:
    async with connected() as (client, peer):
        await peer.send(Publish("a", b"1", 1, packet_id=8), Publish("a", b"2", 2, packet_id=9))
        messages = client.messages()
        assert (await anext(messages)).payload == b"1"
        assert await peer.receive_all() == []
        assert (await anext(messages)).payload == b"2"
        assert await peer.receive_all() == [Puback(8)]
        client.acknowledge()
        assert await peer.receive_all() == [Pubrec(9)]
        await peer.send(Pubrel(9))
        assert await peer.receive_all() == [Pubcomp(9)]


@simulated
async def test_who_leaves_in_peace_has_acknowledged_and_said_so() -> None:
    broker, seen = FakeBroker(), []
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def serve() -> None:
            peer, _ = await broker.accept()
            await peer.send(Publish("a", b"1", 1, packet_id=8))
            seen.extend([await peer.receive(), await peer.receive()])
            await peer.hang_up()

        async with connect_over(broker.open_stream) as client:
            await take(client, 1)
    assert seen == [Puback(8), Disconnect()]


@simulated
async def test_nothing_is_said_after_disconnect() -> None:
    """MQTT 5.0, 3.14.4: not even the answer to a PUBREL that was on its way; the broker sends it again."""
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def serve() -> None:
            peer, _ = await broker.accept()
            await peer.send(Publish("a", b"1", 2, packet_id=8))
            assert [await peer.receive(), await peer.receive()] == [Pubrec(8), Disconnect()]
            await peer.send(Pubrel(8))
            assert await peer.receive_all() == []
            await peer.hang_up()

        async with connect_over(broker.open_stream) as client:
            await take(client, 1)


@simulated
async def test_who_fails_acknowledges_nothing_and_vanishes_so_that_the_will_is_published() -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def serve() -> None:
            peer, _ = await broker.accept()
            await peer.send(Publish("a", b"1", 1, packet_id=8))
            assert await peer.gone()

        async def fail() -> None:
            async with connect_over(broker.open_stream) as client:
                await take(client, 1)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):  # and no group
            await fail()


@simulated
async def test_a_qos2_message_that_comes_again_is_not_delivered_again() -> None:
    """MQTT 5.0, 4.3.3."""
    async with connected() as (client, peer):
        message = Publish("a", b"1", 2, packet_id=9)
        again = Publish("a", b"1", 2, dup=True, packet_id=9)
        await peer.send(message, again)
        await take(client, 1)
        client.acknowledge()
        assert await peer.receive_all() == [Pubrec(9)]
        await peer.send(again)
        assert await peer.receive_all() == [Pubrec(9)]
        await peer.send(Pubrel(9), Publish("a", b"2"))
        assert [each.payload for each in await take(client, 1)] == [b"2"]


@simulated
async def test_a_topic_alias_stands_for_its_topic() -> None:
    """MQTT 5.0, 3.3.2.3.4."""
    async with connected() as (client, peer):
        for topic in ("a", "", "b", ""):
            await peer.send(Publish(topic, b"", properties={"topic_alias": 3}))
        messages = await take(client, 4)
        assert [(message.topic, message.properties) for message in messages] == [
            ("a", {}), ("a", {}), ("b", {}), ("b", {}),
        ]  # fmt: skip
