"""aiomqtt, over asyncio, MQTT 3.1.1 and 5."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiomqtt
import pytest
from aiomqtt import ProtocolVersion

from tests.broker_process import Address
from tests.interop.dying_client import Killed
from tests.interop.paho_peer import properties, told

NUMBERS = [b"%d" % n for n in range(20)]
VERSIONS = pytest.mark.parametrize("version", [ProtocolVersion.V311, ProtocolVersion.V5], ids=["3.1.1", "5"])


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await main()

    asyncio.run(limited())


async def take(client: aiomqtt.Client, count: int) -> list[aiomqtt.Message]:
    return [await anext(client.messages) for _ in range(count)]


async def payloads(client: aiomqtt.Client, count: int) -> list[Any]:
    return [message.payload for message in await take(client, count)]


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_in_order(broker: Address, topic: str, version: ProtocolVersion, qos: int) -> None:
    async def main() -> None:
        async with (
            aiomqtt.Client(*broker, protocol=version) as publisher,
            aiomqtt.Client(*broker, protocol=version) as subscriber,
        ):
            await subscriber.subscribe(topic, qos)
            for payload in NUMBERS:
                await publisher.publish(topic, payload, qos)
            got = await take(subscriber, 20)
            assert [message.payload for message in got] == NUMBERS
            assert {message.qos for message in got} == {qos}

    run(main)


@VERSIONS
def test_a_session_gets_what_came_while_it_was_away(broker: Address, topic: str, version: ProtocolVersion) -> None:
    def session() -> aiomqtt.Client:
        if version == ProtocolVersion.V311:
            return aiomqtt.Client(*broker, identifier=topic, protocol=version, clean_session=False)
        expiry = properties("CONNECT", SessionExpiryInterval=300)
        return aiomqtt.Client(*broker, identifier=topic, protocol=version, clean_start=False, properties=expiry)

    async def main() -> None:
        async with session() as subscriber:
            await subscriber.subscribe(topic, 1)
        async with aiomqtt.Client(*broker) as publisher:
            for payload in NUMBERS:
                await publisher.publish(topic, payload, 1)
        async with session() as subscriber:
            assert await payloads(subscriber, 20) == NUMBERS

    run(main)


def test_the_will_of_one_that_is_killed_is_published(broker: Address, topic: str) -> None:
    async def main() -> None:
        async with aiomqtt.Client(*broker) as watcher:
            await watcher.subscribe(topic, 1)
            with Killed("aiomqtt", broker, topic):
                pass
            assert await payloads(watcher, 1) == [b"gone"]

    run(main)


def test_the_will_of_one_that_is_taken_over_is_published(broker: Address, topic: str) -> None:
    async def main() -> None:
        will = aiomqtt.Will(topic, b"gone", 1)
        async with aiomqtt.Client(*broker) as watcher:
            await watcher.subscribe(topic, 1)
            dying = aiomqtt.Client(*broker, identifier=f"{topic}-d", will=will)
            await dying.__aenter__()
            async with aiomqtt.Client(*broker, identifier=f"{topic}-d"):
                assert await payloads(watcher, 1) == [b"gone"]

    run(main)


@VERSIONS
def test_a_retained_message_greets(broker: Address, topic: str, version: ProtocolVersion) -> None:
    async def main() -> None:
        async with aiomqtt.Client(*broker, protocol=version) as client:
            await client.publish(topic, b"state", 1, retain=True)
            await client.subscribe(topic, 1)
            (message,) = await take(client, 1)
            assert (message.payload, message.retain) == (b"state", True)

    run(main)


def test_mqtt_5_properties_pass_through(broker: Address, topic: str) -> None:
    async def main() -> None:
        async with aiomqtt.Client(*broker, protocol=ProtocolVersion.V5) as client:
            await client.subscribe(topic, 1, properties=properties("SUBSCRIBE", SubscriptionIdentifier=9))
            sent = properties(
                "PUBLISH",
                UserProperty=[("a", "1"), ("a", "2")],
                ResponseTopic="answers/here",
                CorrelationData=b"\x00",
                MessageExpiryInterval=1000,
                TopicAlias=1,
            )
            await client.publish(topic, b"x", 1, properties=sent)
            got = told((await take(client, 1))[0])
            assert got.UserProperty == [("a", "1"), ("a", "2")]
            assert (got.ResponseTopic, got.CorrelationData) == ("answers/here", b"\x00")
            assert got.SubscriptionIdentifier == [9] and 900 < got.MessageExpiryInterval <= 1000

    run(main)


@VERSIONS
def test_a_replay_brings_everything_and_lives_on(log_broker: Address, topic: str, version: ProtocolVersion) -> None:
    async def main() -> None:
        async with (
            aiomqtt.Client(*log_broker) as publisher,
            aiomqtt.Client(*log_broker, protocol=version) as late,
        ):
            for payload in NUMBERS:
                await publisher.publish(topic, payload, 1)
            await late.subscribe(f"$log/earliest/{topic}", 1)
            await publisher.publish(topic, b"live", 1)
            assert await payloads(late, 21) == [*NUMBERS, b"live"]

    run(main)
