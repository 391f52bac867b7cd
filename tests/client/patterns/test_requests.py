"""Requests and their responses, packet by packet. MQTT 5.0, 4.10."""

import pytest
import trio

from rumq.client import ConnectionLost, NoResponse, Refused
from rumq.mqtt.packets import Connack, Puback, Publish, Suback, Subscribe
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import Peer, simulated
from tests.client.meeting import connected, take


async def next_request(peer: Peer, *, subscribes: bool = False, reason: Reason = Reason.SUCCESS) -> Publish:
    """The next request, acknowledged."""
    if subscribes:
        packet = await peer.receive()
        assert isinstance(packet, Subscribe)
        await peer.send(Suback(packet.packet_id, (Reason.GRANTED_QOS_1,)))
    request = await peer.receive()
    assert isinstance(request, Publish) and request.packet_id is not None
    await peer.send(Puback(request.packet_id, reason))
    return request


def response_to(request: Publish, payload: bytes, packet_id: int) -> Publish:
    said = Properties(correlation_data=request.properties["correlation_data"])
    return Publish(request.properties["response_topic"], payload, 1, packet_id=packet_id, properties=said)


@simulated
async def test_each_request_gets_its_own_response_in_whatever_order_they_come() -> None:
    """One subscription serves all; what else comes is for `messages`."""
    async with connected(client_id="desk/7") as (client, peer), trio.open_nursery() as nursery:
        found: dict[str, bytes] = {}

        async def ask(what: str) -> None:
            found[what] = (await client.request("sum", what)).payload

        nursery.start_soon(ask, "a")
        first = await next_request(peer, subscribes=True)
        nursery.start_soon(ask, "b")
        second = await next_request(peer)
        assert first.properties["response_topic"] == "rumq/response/desk%2F7"
        assert first.properties["correlation_data"] != second.properties["correlation_data"]
        await peer.send(Publish("other", b""), response_to(second, b"2", 1), response_to(first, b"1", 2))
        assert [packet.packet_id for packet in await peer.receive_all()] == [1, 2]
        assert found == {"a": b"1", "b": b"2"}
        assert [message.topic for message in await take(client, 1)] == ["other"]


@simulated
async def test_no_response_in_time_is_an_error_and_a_late_one_is_nobodys() -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:
        begin = trio.current_time()
        late: list[Publish] = []

        @nursery.start_soon
        async def broker() -> None:
            late.append(await next_request(peer, subscribes=True))

        with pytest.raises(NoResponse, match="sum: nothing came within 3 s"):
            await client.request("sum", b"", 3)
        assert trio.current_time() - begin == pytest.approx(3)

        @nursery.start_soon
        async def broker_again() -> None:
            request = await next_request(peer)
            await peer.send(response_to(late[0], b"late", 1), response_to(request, b"new", 2))

        assert (await client.request("sum", b"", 3)).payload == b"new"


@simulated
async def test_a_topic_without_subscribers_is_told_at_once() -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: next_request(peer, subscribes=True, reason=Reason.NO_MATCHING_SUBSCRIBERS))
        with pytest.raises(NoResponse, match="nobody subscribes"):
            await client.request("sum", b"")


@simulated
async def test_the_response_topic_is_the_brokers_where_it_gives_one_or_the_callers() -> None:
    connack = Connack(properties=Properties(response_information="answers/", assigned_client_identifier="c1"))
    async with connected(connack) as (client, peer), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: client.request("sum", b""))
        request = await next_request(peer, subscribes=True)
        assert request.properties["response_topic"] == "answers/c1"
        await peer.send(response_to(request, b"", 1))
        await peer.receive()
        nursery.start_soon(lambda: client.request("sum", b"", response_topic="mine"))
        request = await next_request(peer, subscribes=True)
        assert request.properties["response_topic"] == "mine"
        await peer.send(response_to(request, b"", 2))


@simulated
async def test_a_response_topic_that_may_not_be_read_is_a_refusal() -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:

        @nursery.start_soon
        async def broker() -> None:
            await peer.receive()
            await peer.send(Suback(1, (Reason.NOT_AUTHORIZED,)))

        with pytest.raises(Refused, match="0x87"):
            await client.request("sum", b"")


@simulated
async def test_a_loss_without_reconnect_ends_the_wait() -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:

        @nursery.start_soon
        async def broker() -> None:
            await next_request(peer, subscribes=True)
            await peer.hang_up()

        with pytest.raises(ConnectionLost):
            await client.request("sum", b"")


@simulated
async def test_mqtt_3_1_1_has_no_requests() -> None:
    async with connected(version=4) as (client, _):
        with pytest.raises(ValueError, match="MQTT 5"):
            await client.request("sum", b"")
