"""The client's side of MQTT, packet by packet, against a broker that does as the test says: the connection."""

import pytest
import trio

from rumq.client import ConnectionLost, Message, Refused, Will, connect_over
from rumq.client.session import connection
from rumq.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Puback,
    Publish,
    Suback,
    Unsuback,
)
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, simulated
from tests.client.meeting import connected, take


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
            {
                "receive_maximum": 7, "topic_alias_maximum": 16, "request_problem_information": True,
                "session_expiry_interval": 60,
            },
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
        with pytest.raises(ConnectionLost, match="sent nothing for 30 s"):
            await take(client, 1)
        assert trio.current_time() - begin == pytest.approx(30)


@simulated
async def test_a_slow_taker_is_not_read_for_but_a_publish_of_his_gets_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What waits is bounded, TCP tells the broker; who publishes meanwhile must not wait for ever."""
    monkeypatch.setattr(connection, "INBOX_BYTES_MAX", 1000)
    async with connected(keep_alive=10) as (client, peer), trio.open_nursery() as nursery:
        for number in range(10):
            await peer.send(Publish("a", b"%d" % number * 300))
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(100)  # the silence is ours
        assert client._connection.inbound.bytes_waiting < 2000
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
