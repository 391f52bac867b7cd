"""The client's side of MQTT, packet by packet, against a broker that does as the test says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from rumq.client import Client, ConnectionLost, Message, Outgoing, Refused, Will, connect_over, keeper
from rumq.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
)
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, Peer, simulated


@asynccontextmanager
async def connected(
    connack: Connack | None = None, broker: FakeBroker | None = None, **options: Any
) -> AsyncIterator[tuple[Client, Peer]]:
    """A client and its broker's end, which hangs up once the client says DISCONNECT."""
    broker = broker or FakeBroker()
    async with trio.open_nursery() as nursery:
        peers: list[Peer] = []

        async def accept() -> None:
            peers.append((await broker.accept(connack))[0])

        nursery.start_soon(accept)
        try:
            async with connect_over(broker.open_stream, **options) as client:
                [peer] = peers
                yield client, peer
                nursery.start_soon(until_disconnect, peer)
        except BaseException as error:
            failed: BaseException | None = error
        else:
            failed = None
        nursery.cancel_scope.cancel()
    if failed is not None:
        raise failed


async def until_disconnect(peer: Peer) -> None:
    while not isinstance(await peer.receive(), Disconnect):
        pass
    await peer.hang_up()


async def take(client: Client, count: int) -> list[Message]:
    messages: list[Message] = []
    while len(messages) < count:
        messages += await client.receive_batch(messages_max=count - len(messages))
    return messages


@simulated
async def test_connect_says_what_was_asked_for() -> None:
    """MQTT 5.0, 3.1."""
    broker = FakeBroker()
    will = Will("plant/7/state", b"gone", 1, True)
    async with trio.open_nursery() as nursery:
        wish = {"client_id": "desk", "clean_start": False, "session_expiry": 60, "keep_alive": 30}
        wish |= {"will": will, "username": "ann", "password": "secret", "receive_maximum": 7}

        @nursery.start_soon
        async def client() -> None:
            async with connect_over(broker.open_stream, **wish):
                pass

        peer, connect = await broker.accept()
        assert connect == Connect(
            "desk", 5, False, 30, "ann", b"secret", will,
            {"receive_maximum": 7, "topic_alias_maximum": 16, "session_expiry_interval": 60},
        )  # fmt: skip
        assert await peer.receive() == Disconnect()
        await peer.hang_up()


@simulated
async def test_the_client_id_that_the_broker_gives_is_ours() -> None:
    """MQTT 5.0, 3.2.2.3.7."""
    async with connected(Connack(properties={"assigned_client_identifier": "auto-1"})) as (client, _):
        assert client.client_id == "auto-1"


@simulated
async def test_a_refused_connection_says_why() -> None:
    connack = Connack(reason=Reason.NOT_AUTHORIZED, properties={"reason_string": "not on Sundays"})
    with pytest.raises(Refused, match="0x87 not on Sundays") as caught:
        async with connected(connack):
            pass
    assert caught.value.reason_code == Reason.NOT_AUTHORIZED


@simulated
async def test_a_broker_that_does_not_answer_is_given_up_after_ten_seconds() -> None:
    broker = FakeBroker()
    begin = trio.current_time()
    with pytest.raises(ConnectionLost, match="no answer within 10 s"):
        async with connect_over(broker.open_stream):
            pass
    assert trio.current_time() - begin == pytest.approx(10)


@simulated
async def test_no_broker_at_all_is_a_lost_connection() -> None:
    broker = FakeBroker()
    broker.is_up = False
    with pytest.raises(ConnectionLost, match="all attempts failed"):
        async with connect_over(broker.open_stream, reconnect=True):
            pass


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


@simulated
async def test_a_subscription_is_granted_or_refused() -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:

        @nursery.start_soon
        async def broker() -> None:
            assert await peer.receive() == Subscribe(
                1, (Subscription("a/#", 2, True, True, 1),), {"subscription_identifiers": [9]}
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
        assert await peer.receive() == Subscribe(1, (Subscription(asked),), properties)
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


@simulated
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x30\x06\x00\x00\x03\x23\x00\x05", Reason.PROTOCOL_ERROR),  # alias 5 stands for nothing yet
        (b"\x30\x07\x00\x01a\x03\x23\x00\x63", Reason.TOPIC_ALIAS_INVALID),  # 99, and we allow 16
        (b"\x40\x02\x00\x07", Reason.PROTOCOL_ERROR),  # PUBACK of nothing
        (b"\xf1\x00", Reason.MALFORMED_PACKET),
        (b"\xc0\x00", Reason.PROTOCOL_ERROR),  # PINGREQ
    ],
)
async def test_a_broker_that_breaks_the_protocol_is_told_and_left(raw: bytes, reason: Reason) -> None:
    async with trio.open_nursery() as nursery:
        broker = FakeBroker()

        @nursery.start_soon
        async def serve() -> None:
            peer, _ = await broker.accept()
            await peer.send_bytes(raw)
            assert await peer.receive() == Disconnect(reason)
            assert await peer.gone()

        with pytest.raises(ConnectionLost, match="broke the protocol"):
            async with connect_over(broker.open_stream) as client:
                await take(client, 1)


@simulated
async def test_good_packets_before_a_bad_one_count() -> None:
    async with trio.open_nursery() as nursery:
        broker = FakeBroker()

        @nursery.start_soon
        async def serve() -> None:
            peer, _ = await broker.accept()
            await peer.send_bytes(b"\x30\x05\x00\x01a\x001\xf1\x00")
            await peer.receive()

        seen: list[Message] = []

        async def receive() -> None:
            async with connect_over(broker.open_stream) as client:
                async for message in client.messages():
                    seen.append(message)

        with pytest.raises(ConnectionLost):
            await receive()
        assert [message.payload for message in seen] == [b"1"]


@simulated
async def test_the_broker_is_asked_twice_an_interval_and_left_after_one_and_a_half_of_silence() -> None:
    """MQTT 5.0, 3.1.2.10; the interval is the broker's where it gives one, 3.2.2.3.14."""
    connack = Connack(properties={"server_keep_alive": 20})
    async with connected(connack, keep_alive=60) as (client, peer):
        begin = trio.current_time()
        for number in (1, 2):
            assert await peer.receive() == Pingreq()
            assert trio.current_time() - begin == pytest.approx(10 * number)
        with pytest.raises(ConnectionLost, match="said nothing for 30 s"):
            await take(client, 1)
        assert trio.current_time() - begin == pytest.approx(30)


@simulated
async def test_a_slow_taker_is_not_read_for_but_a_publish_of_his_gets_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What waits is bounded, TCP tells the broker; who publishes meanwhile must not wait for ever."""
    monkeypatch.setattr(keeper, "INBOX_BYTES_MAX", 1000)
    async with connected(keep_alive=10) as (client, peer), trio.open_nursery() as nursery:
        for number in range(10):
            await peer.send(Publish("a", b"%d" % number * 300))
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(100)  # the silence is ours
        assert client._keeper.inbound.bytes_waiting < 2000
        nursery.start_soon(lambda: client.publish("b", b"", qos=1))
        published = [packet for packet in await peer.receive_all() if isinstance(packet, Publish)]
        await peer.send(Puback(published[0].packet_id))
        assert len(await take(client, 10)) == 10


@simulated
async def test_mqtt_3_1_1_has_no_properties_and_no_reasons() -> None:
    async with connected(version=4, client_id="old") as (client, peer), trio.open_nursery() as nursery:

        @nursery.start_soon
        async def broker() -> None:
            await peer.receive()
            await peer.send(Suback(1, (Reason.GRANTED_QOS_2,)))
            await peer.receive()
            await peer.send(Puback(2))
            await peer.receive()
            await peer.send(Unsuback(3))

        assert await client.subscribe("a", qos=2) == 2
        assert await client.publish("a", b"1", qos=1) == Reason.SUCCESS
        await client.unsubscribe("a")
