"""amqtt's client, over asyncio."""

import asyncio

from amqtt.client import MQTTClient
from amqtt.mqtt.constants import QOS_0, QOS_1, QOS_2

QUIET = {"auto_reconnect": False, "ping_delay": 1}


async def first(client: MQTTClient, count: int) -> list[bytes]:
    got = []
    for _ in range(count):
        message = await client.deliver_message(timeout_duration=10)
        assert message is not None
        got.append(bytes(message.data))
    return got


def test_messages_of_each_qos_arrive_in_order(port: int, topic: str) -> None:
    async def main() -> None:
        publisher, subscriber = MQTTClient(config=QUIET), MQTTClient(config=QUIET)
        await publisher.connect(f"mqtt://127.0.0.1:{port}/")
        await subscriber.connect(f"mqtt://127.0.0.1:{port}/")
        for qos in (QOS_0, QOS_1, QOS_2):
            await subscriber.subscribe([(f"{topic}/{qos}", qos)])
            for n in range(20):
                await publisher.publish(f"{topic}/{qos}", b"%d" % n, qos)
            assert await first(subscriber, 20) == [b"%d" % n for n in range(20)]
        await publisher.disconnect()
        await subscriber.disconnect()

    asyncio.run(main())


def test_a_session_gets_what_came_while_it_was_away(port: int, topic: str) -> None:
    async def main() -> None:
        address, name = f"mqtt://127.0.0.1:{port}/", topic.replace("/", "-")
        subscriber = MQTTClient(client_id=name, config=QUIET)
        await subscriber.connect(address, cleansession=False)
        await subscriber.subscribe([(topic, QOS_1)])
        await subscriber.disconnect()
        publisher = MQTTClient(config=QUIET)
        await publisher.connect(address)
        for n in range(10):
            await publisher.publish(topic, b"%d" % n, QOS_1)
        await publisher.disconnect()
        again = MQTTClient(client_id=name, config=QUIET)
        await again.connect(address, cleansession=False)
        assert await first(again, 10) == [b"%d" % n for n in range(10)]
        await again.disconnect()

    asyncio.run(main())


def test_the_will_of_one_that_is_taken_over_is_published(port: int, topic: str) -> None:
    async def main() -> None:
        address, name = f"mqtt://127.0.0.1:{port}/", topic.replace("/", "-")
        will = {"will": {"topic": topic, "message": "gone", "qos": 1, "retain": False}}
        watcher, dying = MQTTClient(config=QUIET), MQTTClient(client_id=name, config=QUIET | will)
        await watcher.connect(address)
        await watcher.subscribe([(topic, QOS_1)])
        await dying.connect(address)
        second = MQTTClient(client_id=name, config=QUIET)
        await second.connect(address)
        assert await first(watcher, 1) == [b"gone"]
        await second.disconnect()
        await watcher.disconnect()

    asyncio.run(main())
