"""aiomqtt, over asyncio."""

import asyncio

import aiomqtt


async def first(client: aiomqtt.Client, count: int) -> list[bytes]:
    got: list[bytes] = []
    async with asyncio.timeout(10):
        async for message in client.messages:
            got.append(bytes(message.payload))
            if len(got) == count:
                return got
    return got


def test_messages_of_each_qos_arrive_in_order(port: int, topic: str) -> None:
    async def main() -> None:
        async with (
            aiomqtt.Client("127.0.0.1", port) as publisher,
            aiomqtt.Client("127.0.0.1", port) as subscriber,
        ):
            for qos in range(3):
                await subscriber.subscribe(f"{topic}/{qos}", qos)
                for n in range(50):
                    await publisher.publish(f"{topic}/{qos}", b"%d" % n, qos)
                assert await first(subscriber, 50) == [b"%d" % n for n in range(50)]

    asyncio.run(main())


def test_a_session_gets_what_came_while_it_was_away(port: int, topic: str) -> None:
    async def main() -> None:
        async with aiomqtt.Client("127.0.0.1", port, identifier=topic, clean_session=False) as subscriber:
            await subscriber.subscribe(topic, 1)
        async with aiomqtt.Client("127.0.0.1", port) as publisher:
            for n in range(20):
                await publisher.publish(topic, b"%d" % n, 1)
        async with aiomqtt.Client("127.0.0.1", port, identifier=topic, clean_session=False) as subscriber:
            assert await first(subscriber, 20) == [b"%d" % n for n in range(20)]

    asyncio.run(main())


def test_the_will_of_one_that_is_taken_over_is_published(port: int, topic: str) -> None:
    async def main() -> None:
        will = aiomqtt.Will(topic, b"gone", 1)
        async with aiomqtt.Client("127.0.0.1", port) as watcher:
            await watcher.subscribe(topic, 1)
            dying = aiomqtt.Client("127.0.0.1", port, identifier=f"{topic}-d", will=will)
            await dying.__aenter__()
            async with aiomqtt.Client("127.0.0.1", port, identifier=f"{topic}-d"):
                assert await first(watcher, 1) == [b"gone"]

    asyncio.run(main())
