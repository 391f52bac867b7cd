"""What a client publishes, packet by packet, against a broker that does as the test says."""

import pytest
import trio

from rumq.client import Outgoing, Refused
from rumq.mqtt.packets import (
    Connack,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
)
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import simulated
from tests.client.meeting import connected


@simulated
async def test_a_qos1_publish_returns_once_it_is_acknowledged() -> None:
    """MQTT 5.0, 4.3.2."""
    async with connected() as (client, peer), trio.open_nursery() as nursery:
        returned = trio.Event()

        @nursery.start_soon
        async def publish() -> None:
            assert await client.publish("a", "hello", qos=1) == Reason.NO_MATCHING_SUBSCRIBERS
            returned.set()

        assert await peer.receive_all() == [Publish("a", b"hello", 1, packet_id=1)]
        assert not returned.is_set()
        await peer.send(Puback(1, Reason.NO_MATCHING_SUBSCRIBERS))
        await returned.wait()


@simulated
async def test_a_qos2_publish_takes_both_steps() -> None:
    """MQTT 5.0, 4.3.3."""
    async with connected() as (client, peer), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: client.publish("a", b"", qos=2, retain=True))
        assert await peer.receive() == Publish("a", b"", 2, True, packet_id=1)
        await peer.send(Pubrec(1))
        assert await peer.receive_all() == [Pubrel(1)]
        await peer.send(Pubcomp(1))


@simulated
@pytest.mark.parametrize(("qos", "answer"), [(1, Puback), (2, Pubrec)])
async def test_a_refused_publish_says_which_and_why(qos: int, answer: type[Puback]) -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:

        @nursery.start_soon
        async def broker() -> None:
            await peer.receive()
            await peer.send(answer(1, Reason.QUOTA_EXCEEDED, {"reason_string": "disk full"}))

        with pytest.raises(Refused, match="PUBLISH to a: 0x97 disk full"):
            await client.publish("a", b"", qos=qos)


@simulated
async def test_no_more_is_in_flight_than_the_broker_takes() -> None:
    """MQTT 5.0, 4.9."""
    connack = Connack(properties={"receive_maximum": 2})
    async with connected(connack) as (client, peer), trio.open_nursery() as nursery:
        messages = [Outgoing("a", str(number).encode(), 1) for number in range(5)]
        nursery.start_soon(client.publish_batch, messages)
        seen: list[bytes] = []
        in_flight: list[int] = []
        while len(seen) < 5 or in_flight:
            for packet in await peer.receive_all():
                seen.append(packet.payload)
                in_flight.append(packet.packet_id)
            assert 1 <= len(in_flight) <= 2
            await peer.send(Puback(in_flight.pop(0)))
        assert seen == [b"0", b"1", b"2", b"3", b"4"]


@simulated
async def test_qos0_is_sent_when_the_context_is_left() -> None:
    async with connected() as (client, peer):
        await client.publish_batch([Outgoing("a", b"x")] * 3)
        assert await peer.receive_all() == [Publish("a", b"x")] * 3


@simulated
async def test_what_the_broker_would_not_take_is_refused_here_and_its_id_is_free_again() -> None:
    """MQTT 5.0, 3.2.2.3.6."""
    connack = Connack(properties={"maximum_packet_size": 100, "receive_maximum": 1})
    async with connected(connack) as (client, peer), trio.open_nursery() as nursery:
        with pytest.raises(Refused, match="0x95"):
            await client.publish("a", b"x" * 100, qos=1)
        nursery.start_soon(lambda: client.publish("a", b"x", qos=1))
        packet = await peer.receive()
        await peer.send(Puback(packet.packet_id))
