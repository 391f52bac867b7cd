"""A lost connection, and the next one: what is sent again, and when there is none. MQTT 5.0, 4.4."""

import pytest
import trio

from rumq.client import ConnectionLost, Outgoing, Reconnect, Refused, connect_over
from rumq.mqtt.packets import (
    Connack,
    Disconnect,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    SubscriptionRequest,
)
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, simulated

RESUMED = Connack(session_present=True)


@simulated
async def test_after_a_loss_it_tries_again_after_100_ms_and_up_to_2_s_apart() -> None:
    """Without chance's part, which makes a pause shorter."""
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold, broker)
        peer, _ = await broker.accept()
        broker.is_up, broker.tried_at = False, [trio.current_time()]
        await peer.hang_up()
        await trio.sleep(9.5)
        waits = [after - before for before, after in zip(broker.tried_at, broker.tried_at[1:], strict=False)]
        assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2, 2, 2])
        broker.is_up = True
        peer, connect = await broker.accept()
        assert connect.client_id == "desk" and not connect.clean_start
        nursery.cancel_scope.cancel()


async def hold(broker: FakeBroker) -> None:
    async with connect_over(broker.open_stream, client_id="desk", reconnect=Reconnect(chance=lambda: 1.0)):
        await trio.sleep_forever()


@simulated
@pytest.mark.parametrize("session_present", [True, False])
async def test_what_was_not_acknowledged_is_sent_again_in_order(session_present: bool) -> None:
    """With DUP, where the broker has kept the session: to one that has not, it is no duplicate."""
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:
        messages = [Outgoing("a", b"0", 1), Outgoing("a", b"1", 2), Outgoing("a", b"2", 1)]

        @nursery.start_soon
        async def publish() -> None:
            async with connect_over(broker.open_stream, session_expiry=60, reconnect=True) as client:
                assert await client.publish_batch(messages) == [0, 0, 0]

        peer, _ = await broker.accept()
        assert [packet.payload for packet in await peer.receive_all()] == [b"0", b"1", b"2"]
        await peer.send(Puback(1))
        await trio.testing.wait_all_tasks_blocked()
        await peer.hang_up()
        peer, _ = await broker.accept(Connack(session_present))
        assert await peer.receive_all() == [
            Publish("a", b"1", 2, dup=session_present, packet_id=2),
            Publish("a", b"2", 1, dup=session_present, packet_id=3),
        ]
        await peer.send(Puback(3), Pubrec(2))
        assert await peer.receive() == Pubrel(2)
        await peer.send(Pubcomp(2))
        assert await peer.receive() == Disconnect()
        await peer.hang_up()


@simulated
@pytest.mark.parametrize("session_present", [True, False])
async def test_after_pubrec_the_message_itself_is_never_sent_again(session_present: bool) -> None:
    """MQTT 5.0, 4.3.3: it is the broker's, also where that has forgotten the session."""
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def publish() -> None:
            async with connect_over(broker.open_stream, reconnect=True) as client:
                await client.publish("a", b"", qos=2)

        peer, _ = await broker.accept()
        await peer.receive()
        await peer.send(Pubrec(1))
        await peer.receive()
        await peer.hang_up()
        peer, _ = await broker.accept(Connack(session_present))
        if session_present:
            assert await peer.receive() == Pubrel(1)
            await peer.send(Pubcomp(1))
        assert await peer.receive() == Disconnect()
        await peer.hang_up()


@simulated
async def test_a_broker_that_forgot_the_session_is_asked_for_the_same_filters_from_now_on() -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def subscribe() -> None:
            async with connect_over(broker.open_stream, reconnect=True) as client:
                await client.subscribe("a/#", qos=1, from_="earliest")
                await client.subscribe("b")
                assert (await anext(client.messages())).payload == b"live"

        peer, _ = await broker.accept()
        for packet_id in (1, 2):
            await peer.receive()
            await peer.send(Suback(packet_id, (Reason.GRANTED_QOS_1,)))
        await trio.testing.wait_all_tasks_blocked()
        await peer.hang_up()
        peer, _ = await broker.accept(Connack(session_present=False))
        assert await peer.receive() == Subscribe(3, (SubscriptionRequest("a/#", 1), SubscriptionRequest("b")))
        await peer.send(Suback(3, (Reason.GRANTED_QOS_1, Reason.GRANTED_QOS_0)), Publish("a/1", b"live"))
        assert await peer.receive() == Disconnect()
        await peer.hang_up()


@simulated
async def test_a_resumed_session_delivers_what_was_not_taken_once_and_acknowledges_it_once() -> None:
    """What waited is dropped, as the broker sends it again; what was taken is not delivered again."""
    broker, seen = FakeBroker(), []
    async with trio.open_nursery() as nursery:
        taken = trio.Event()

        @nursery.start_soon
        async def receive() -> None:
            async with connect_over(broker.open_stream, session_expiry=60, reconnect=True) as client:
                seen.append((await client.receive_batch(messages_max=1))[0].payload)
                await taken.wait()
                for _ in range(2):
                    seen.append((await client.receive_batch(messages_max=1))[0].payload)

        peer, _ = await broker.accept()
        await peer.send(*(Publish("a", b"%d" % packet_id, 2, packet_id=packet_id) for packet_id in (1, 2)))
        await peer.send(Publish("a", b"3", 1, packet_id=3))
        await trio.testing.wait_all_tasks_blocked()
        await peer.hang_up()
        peer, _ = await broker.accept(RESUMED)
        for packet_id in (1, 2):
            await peer.send(Publish("a", b"%d" % packet_id, 2, dup=True, packet_id=packet_id))
        await peer.send(Publish("a", b"3", 1, dup=True, packet_id=3))
        assert await peer.receive_all() == [Pubrec(1)]
        taken.set()
        assert await peer.receive_all() == [Pubrec(2), Puback(3), Disconnect()]
        await peer.hang_up()
    assert seen == [b"1", b"2", b"3"]


@simulated
async def test_what_waited_of_a_forgotten_session_is_delivered_and_not_acknowledged() -> None:
    """Its packet id may mean another message by now."""
    broker, seen = FakeBroker(), []
    async with trio.open_nursery() as nursery:
        go_on = trio.Event()

        @nursery.start_soon
        async def receive() -> None:
            async with connect_over(broker.open_stream, reconnect=True) as client:
                await go_on.wait()
                seen.extend(message.payload for message in await client.receive_batch())

        peer, _ = await broker.accept()
        await peer.send(Publish("a", b"1", 1, packet_id=1))
        await trio.testing.wait_all_tasks_blocked()
        await peer.hang_up()
        peer, _ = await broker.accept(Connack())
        go_on.set()
        assert await peer.receive() == Disconnect()
        await peer.hang_up()
    assert seen == [b"1"]


@simulated
async def test_qos0_waits_for_the_next_connection() -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:
        lost = trio.Event()

        @nursery.start_soon
        async def publish() -> None:
            async with connect_over(broker.open_stream, reconnect=True) as client:
                await lost.wait()
                await client.publish("a", b"late")

        peer, _ = await broker.accept()
        await peer.hang_up()
        await trio.testing.wait_all_tasks_blocked()
        lost.set()
        peer, _ = await broker.accept()
        assert await peer.receive() == Publish("a", b"late")
        assert await peer.receive() == Disconnect()
        await peer.hang_up()


@simulated
async def test_who_was_taken_over_does_not_come_back() -> None:
    """Two clients of one id would throw each other out for ever. MQTT 5.0, 3.1.4."""
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def receive() -> None:
            with pytest.raises(Refused, match="0x8E"):
                async with connect_over(broker.open_stream, reconnect=True) as client:
                    await client.receive_batch()

        peer, _ = await broker.accept()
        await peer.send(Disconnect(Reason.SESSION_TAKEN_OVER))
    assert len(broker.tried_at) == 1


@simulated
async def test_a_busy_broker_is_tried_again_and_a_lasting_no_is_taken() -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def publish() -> None:
            with pytest.raises(Refused, match="0x86"):
                async with connect_over(broker.open_stream, reconnect=True) as client:
                    await client.publish("a", b"", qos=1)

        peer, _ = await broker.accept()
        await peer.hang_up()
        await broker.accept(Connack(reason=Reason.SERVER_BUSY))
        await broker.accept(Connack(reason=Reason.BAD_USER_NAME_OR_PASSWORD))
    assert len(broker.tried_at) == 3


@simulated
async def test_without_reconnect_whoever_waits_is_told() -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def publish() -> None:
            with pytest.raises(ConnectionLost, match="the broker closed it"):
                async with connect_over(broker.open_stream) as client:
                    await client.publish("a", b"", qos=1)

        peer, _ = await broker.accept()
        await peer.receive()
        await peer.hang_up()
