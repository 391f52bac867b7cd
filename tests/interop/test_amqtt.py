"""amqtt's client, over asyncio. It speaks MQTT 3.1.1 only."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from amqtt.client import MQTTClient

from tests.broker_process import Address
from tests.interop.dying_client import Killed

NUMBERS = [b"%d" % n for n in range(20)]
SECONDS_MAX = 30


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(2 * SECONDS_MAX):
            await main()

    asyncio.run(limited())


async def dial(at: Address, name: str | None = None, *, lasting: bool = False) -> MQTTClient:
    client = MQTTClient(client_id=name, config={"auto_reconnect": False})
    await client.connect(f"mqtt://{at.host}:{at.port}/", cleansession=not lasting)
    return client


async def payloads(client: MQTTClient, count: int) -> list[bytes]:
    got = []
    for _ in range(count):
        message = await client.deliver_message(timeout_duration=SECONDS_MAX)
        assert message is not None
        got.append(bytes(message.data))
    return got


async def leave(*clients: MQTTClient) -> None:
    for client in clients:
        await client.disconnect()


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_in_order(broker: Address, topic: str, qos: int) -> None:
    async def main() -> None:
        publisher, subscriber = await dial(broker), await dial(broker)
        await subscriber.subscribe([(topic, qos)])
        for payload in NUMBERS:
            await publisher.publish(topic, payload, qos)
        assert await payloads(subscriber, 20) == NUMBERS
        await leave(publisher, subscriber)

    run(main)


def test_a_session_gets_what_came_while_it_was_away(broker: Address, topic: str) -> None:
    async def main() -> None:
        name = topic.replace("/", "-")
        subscriber = await dial(broker, name, lasting=True)
        await subscriber.subscribe([(topic, 1)])
        await leave(subscriber)
        publisher = await dial(broker)
        for payload in NUMBERS:
            await publisher.publish(topic, payload, 1)
        again = await dial(broker, name, lasting=True)
        assert await payloads(again, 20) == NUMBERS
        await leave(publisher, again)

    run(main)


def test_the_will_of_one_that_is_killed_is_published(broker: Address, topic: str) -> None:
    async def main() -> None:
        watcher = await dial(broker)
        await watcher.subscribe([(topic, 1)])
        with Killed("amqtt", broker, topic):
            pass
        assert await payloads(watcher, 1) == [b"gone"]
        await leave(watcher)

    run(main)


def test_a_retained_message_greets(broker: Address, topic: str) -> None:
    async def main() -> None:
        client = await dial(broker)
        await client.publish(topic, b"state", 1, retain=True)
        await client.subscribe([(topic, 1)])
        message = await client.deliver_message(timeout_duration=SECONDS_MAX)
        assert message is not None
        assert (bytes(message.data), message.retain) == (b"state", True)
        await leave(client)

    run(main)


def test_a_replay_brings_everything_and_lives_on(log_broker: Address, topic: str) -> None:
    async def main() -> None:
        publisher, late = await dial(log_broker), await dial(log_broker)
        for payload in NUMBERS:
            await publisher.publish(topic, payload, 1)
        await late.subscribe([(f"$log/earliest/{topic}", 1)])
        await publisher.publish(topic, b"live", 1)
        assert await payloads(late, 21) == [*NUMBERS, b"live"]
        await leave(publisher, late)

    run(main)
