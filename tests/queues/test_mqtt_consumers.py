"""Consumers over MQTT beside those of doors: one channel, each message to one of them.

docs/reference/queues.md, "Over MQTT"."""

from __future__ import annotations

import shutil
import subprocess
import threading

import paho.mqtt.client as paho
import pytest
import trio
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from rumq.client import Refused, connect
from rumq.queues import Push, Pushed, PushResult, Queues
from tests.queues.world import World, until

COUNT = 300


class PahoConsumer:
    """A client that nobody here wrote: SUBSCRIBE to the share, PUBACK by itself."""

    def __init__(self, world: World, share: str, acknowledges: bool = True) -> None:
        self.got: list[tuple[str, bytes, dict[str, str]]] = []
        self.subscribed = threading.Event()
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2, "paho", protocol=paho.MQTTv5, manual_ack=not acknowledges
        )
        self.client.on_message = self._message
        self.client.on_subscribe = lambda *_: self.subscribed.set()
        asks = Properties(PacketTypes.SUBSCRIBE)
        asks.UserProperty = ("rumq-place", "yes")
        self.client.on_connect = lambda client, *_: client.subscribe(
            share, options=SubscribeOptions(qos=1), properties=asks
        )
        self.client.connect(*world.broker.address)
        self.client.loop_start()
        assert self.subscribed.wait(10)

    def _message(self, client: object, userdata: object, message: paho.MQTTMessage) -> None:
        told: dict[str, str] = dict(getattr(message.properties, "UserProperty", []))
        self.got.append((message.topic, bytes(message.payload), told))

    def end(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.parametrize("shards", [1, 2])
def test_paho_and_a_door_share_a_channel(world: World, two_shards: World, shards: int) -> None:
    place = two_shards if shards == 2 else world

    async def body(door: Queues) -> None:
        await door.create_queue("", "shared")
        made = await door.create_channel("", "shared")
        consumer = await trio.to_thread.run_sync(PahoConsumer, place, made.share)
        mine: dict[str, bytes] = {}
        try:
            async with door.consume("", made.definition.channel_id, 20) as other:

                async def take() -> None:
                    while True:
                        batch = await other.next_batch(20, 1.0)
                        mine.update({str(each.id): each.payload for each in batch})
                        await other.acknowledge([each.id for each in batch])

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(take)
                    pushed: list[PushResult] = []
                    for first in range(0, COUNT, 10):
                        batch = [Push(payload=b"%d" % number, topic="t") for number in range(first, first + 10)]
                        pushed += await door.push("", "shared", batch)
                        await trio.sleep(0.005)
                    await until(lambda: len(mine) + len(consumer.got) >= COUNT)
                    nursery.cancel_scope.cancel()
        finally:
            await trio.to_thread.run_sync(consumer.end)
        theirs = {f"{int(told['rumq-offset']) + 1}@t": payload for _, payload, told in consumer.got}
        assert len(mine) > 20 and len(theirs) > 20, "both have a part of them"
        assert not set(mine) & set(theirs), "each message went to one of them"
        expected = {str(each.id): b"%d" % n for n, each in enumerate(pushed) if isinstance(each, Pushed)}
        assert {**mine, **theirs} == expected
        assert all(topic == "$queues/shared/t" for topic, _, _ in consumer.got)

    place.run(body, f"door{shards}")


@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="mosquitto_sub is not installed")
def test_mosquitto_sub_consumes_a_channel_that_waited(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "plain")
        made = await door.create_channel("", "plain", "Sport")
        await door.push("", "plain", [Push(payload=b"one", topic="SPORT"), Push(payload=b"other", topic="music")])
        await door.push("", "plain", [Push(payload=b"two", topic="sport")])
        host, port = world.broker.address
        command = ["mosquitto_sub", "-h", host, "-p", str(port), "-q", "1", "-C", "2", "-W", "10", "-t", made.share]
        done = await trio.to_thread.run_sync(lambda: subprocess.run(command, capture_output=True, check=False))
        assert done.stdout.split() == [b"one", b"two"]
        # They are acknowledged: nobody gets them again.
        async with door.consume("", made.definition.channel_id) as consumer:
            assert await consumer.next_batch(10, 1.0) == []

    world.run(body)


def test_the_end_of_an_mqtt_session_gives_back_what_it_held(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "nack")
        made = await door.create_channel("", "nack")
        await door.push("", "nack", [Push(payload=b"1"), Push(payload=b"2")])
        client = await trio.to_thread.run_sync(PahoConsumer, world, made.share, False)
        await until(lambda: len(client.got) > 0)
        await trio.to_thread.run_sync(client.end)  # without an acknowledgement
        async with door.consume("", made.definition.channel_id) as consumer:
            found: set[bytes] = set()
            while len(found) < 2:
                batch = await consumer.next_batch(10, 10.0)
                assert batch
                found |= {each.payload for each in batch}

    world.run(body)


@pytest.mark.parametrize("version", [5, 4])
@pytest.mark.parametrize("topic", ["$queues/news/t", "$queues/$config/news", "$queues/x", "$queues"])
def test_nobody_pushes_over_mqtt(world: World, version: int, topic: str) -> None:
    """Its bounds would not hold: the broker refuses with the way out, also where the topic is known to it."""

    async def body(door: Queues) -> None:
        await door.create_queue("", "news")
        made = await door.create_channel("", "news")
        await door.push("", "news", [Push(payload=b"x", topic="t")])
        async with connect(*world.broker.address, version=version) as client:
            if version == 5:
                with pytest.raises(Refused, match="pushed to through REST or gRPC") as caught:
                    await client.publish(topic, b"forged", qos=1, retain=topic.endswith("config/news"))
                assert caught.value.reason_code == 0x87
            else:
                await client.publish(topic, b"forged", qos=1)  # 3.1.1 has no words for it
            await client.publish(topic, b"forged", qos=0)
            await client.publish("plain", b"goes on", qos=1)
        async with door.consume("", made.definition.channel_id) as consumer:
            batch = await consumer.next_batch(10, 5.0)
            assert [each.payload for each in batch] == [b"x"]
            assert await consumer.next_batch(10, 0.5) == []
        assert [each.definition.label for each in await door.queues("")].count("news") == 1
        await door.delete_queue("", "news")

    world.run(body)


def test_no_wildcard_subscriber_sees_queues_by_accident(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "hidden")
        async with connect(*world.broker.address) as client:
            await client.subscribe("#", qos=1)
            await door.push("", "hidden", [Push(payload=b"secret")])
            await client.publish("seen", b"1", qos=1)
            assert [each.topic for each in await client.receive_batch()] == ["seen"]

    world.run(body)
