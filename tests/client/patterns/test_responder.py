"""Answers to requests: to their response topics, with their correlation data. MQTT 5.0, 4.10."""

import pytest
import trio

from rumq.client import Client, Message
from rumq.mqtt.packets import Puback, Publish, Suback, Subscribe, SubscriptionRequest, Unsuback, Unsubscribe
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import Peer, simulated
from tests.client.meeting import connected, take


def request(packet_id: int, payload: bytes, topic: str | None = "answers") -> Publish:
    said = Properties(correlation_data=b"c%d" % packet_id)
    if topic is not None:
        said["response_topic"] = topic
    return Publish("sum/1", payload, 1, packet_id=packet_id, properties=said)


async def begin(client: Client, peer: Peer, nursery: trio.Nursery, handler: object, **options: object) -> None:
    """Have the client respond; returns once it has subscribed."""

    async def grant() -> None:
        assert await peer.receive() == Subscribe(1, (SubscriptionRequest("sum/#", 1),))
        await peer.send(Suback(1, (Reason.GRANTED_QOS_1,)))

    nursery.start_soon(grant)

    async def respond(task_status: trio.TaskStatus[None]) -> None:
        await client.respond("sum/#", handler, task_status=task_status, **options)  # type: ignore[arg-type]

    await nursery.start(respond)


@simulated
async def test_a_request_is_acknowledged_when_its_response_is() -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:

        async def upper(message: Message) -> bytes:
            return message.payload.upper()

        await begin(client, peer, nursery, upper)
        await peer.send(request(7, b"a"), Publish("other", b""))
        response = await peer.receive()
        assert response == Publish("answers", b"A", 1, packet_id=2, properties=Properties(correlation_data=b"c7"))
        assert await peer.receive_all() == []
        await peer.send(Puback(2))
        assert await peer.receive_all() == [Puback(7)]
        assert [message.topic for message in await take(client, 1)] == ["other"]
        nursery.cancel_scope.cancel()


@simulated
@pytest.mark.parametrize(("topic", "answer"), [(None, "x"), ("answers", None)])
async def test_who_expects_no_response_or_has_none_gets_none(topic: str | None, answer: str | None) -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:

        async def handler(_: Message) -> str | None:
            return answer

        await begin(client, peer, nursery, handler)
        await peer.send(request(7, b"", topic))
        assert await peer.receive_all() == [Puback(7)]
        nursery.cancel_scope.cancel()


@simulated
async def test_so_many_are_worked_on_at_once_and_the_rest_waits() -> None:
    async with connected() as (client, peer), trio.open_nursery() as nursery:
        working: list[bytes] = []
        go_on = trio.Event()

        async def slow(message: Message) -> None:
            working.append(message.payload)
            await go_on.wait()

        await begin(client, peer, nursery, slow, concurrent_max=2)
        await peer.send(*(request(number, b"%d" % number) for number in (1, 2, 3)))
        await trio.testing.wait_all_tasks_blocked()
        assert working == [b"1", b"2"]
        go_on.set()
        assert await peer.receive_all() == [Puback(1), Puback(2), Puback(3)]
        nursery.cancel_scope.cancel()


@simulated
async def test_what_the_handler_raises_ends_it_and_the_request_is_not_acknowledged() -> None:
    async with connected() as (client, peer):

        async def fail(_: Message) -> None:
            raise ZeroDivisionError

        async def broker() -> None:
            await peer.send(request(7, b""))
            packet = await peer.receive()
            assert packet == Unsubscribe(2, ("sum/#",)), packet
            await peer.send(Unsuback(2, (Reason.SUCCESS,)))

        async def serve() -> None:
            async with trio.open_nursery() as nursery:
                await begin(client, peer, nursery, fail)
                await broker()
                await trio.sleep(10)

        with pytest.raises(BaseExceptionGroup) as raised:
            await serve()
        assert raised.group_contains(ZeroDivisionError)
