"""Acknowledgements that the application gives itself: in the order of arrival, whatever order it gives them in."""

import itertools

import pytest
import trio

from rumq.client import connect_over
from rumq.client.session.inbound import Inbound
from rumq.mqtt.packets import Connack, Puback, Publish, Pubrec
from tests.client.fake_broker import FakeBroker, simulated
from tests.client.meeting import connected, take


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_no_acknowledgement_overtakes_one_of_an_earlier_message(order: tuple[int, ...]) -> None:
    """MQTT-4.6.0-2 and 4.6.0-3; QoS 0 has none."""
    inbound = Inbound(0, manual=True)
    inbound.connected(session_present=False)
    for number, qos in enumerate((1, 2, 0, 1)):
        inbound.receive(Publish("a", b"", qos, packet_id=number + 1 if qos else None))
    messages = inbound.pop(None)
    sent = []
    for count, number in enumerate(order, 1):
        sent += inbound.acknowledge([messages[number]])
        done = {*order[:count], 2}
        ready = list(itertools.takewhile(done.__contains__, range(4)))
        assert [packet.packet_id for packet in sent] == [each + 1 for each in ready if each != 2]
    assert [type(packet) for packet in sent] == [Puback, Pubrec, Puback]


@simulated
async def test_with_manual_acknowledge_taking_the_next_message_acknowledges_nothing() -> None:
    async with connected(manual_acknowledge=True) as (client, peer):
        await peer.send(*(Publish("a", b"", 1, packet_id=number) for number in (1, 2, 3)))
        first, second, third = await take(client, 3)
        client.acknowledge(third)
        client.acknowledge(second)
        assert await peer.receive_all() == []
        client.acknowledge(first)
        assert await peer.receive_all() == [Puback(1), Puback(2), Puback(3)]
        client.acknowledge(first)
        assert await peer.receive_all() == []


@simulated
async def test_what_was_taken_and_not_acknowledged_comes_again_after_a_loss() -> None:
    """Also at QoS 2: the application has not said that it has it."""
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:
        seen: list[bytes] = []

        @nursery.start_soon
        async def receive() -> None:
            async with connect_over(
                broker.open_stream, session_expiry=60, reconnect=True, manual_acknowledge=True
            ) as client:
                [early] = await take(client, 1)
                [again] = await take(client, 1)
                client.acknowledge(early)  # of a connection that is gone
                client.acknowledge(again)
                seen.extend([early.payload, again.payload])
                await trio.sleep_forever()

        peer, _ = await broker.accept()
        await peer.send(Publish("a", b"1", 2, packet_id=5))
        await trio.testing.wait_all_tasks_blocked()
        await peer.hang_up()
        peer, _ = await broker.accept(Connack(session_present=True))
        await peer.send(Publish("a", b"1", 2, dup=True, packet_id=5))
        assert await peer.receive_all() == [Pubrec(5)]
        assert seen == [b"1", b"1"]
        nursery.cancel_scope.cancel()


def test_a_lane_takes_its_messages_from_the_main_one_and_back() -> None:
    inbound = Inbound(0)
    inbound.connected(session_present=False)
    lane = inbound.add_lane("a/+")
    for topic in ("a/1", "b", "a/2"):
        inbound.receive(Publish(topic, b""))
    assert [message.topic for message in inbound.pop(None)] == ["b"]
    assert [message.topic for message in inbound.pop(1, lane)] == ["a/1"]
    inbound.remove_lane(lane)
    assert inbound.bytes_waiting == 0
    inbound.receive(Publish("a/3", b""))
    assert [message.topic for message in inbound.pop(None)] == ["a/3"]
