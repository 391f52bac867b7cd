"""kill -9 of the broker, of a shard, of a door, while messages are pushed and consumed: nothing acknowledged is lost.

docs/reference/queues.md, "Guarantees"."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable

import pytest
import trio

from rumq.queues import ChannelSettings, Push, Queues, QueueSettings
from tests.faults.kill.test_shards import shards_of
from tests.queues.traffic import Traffic
from tests.queues.world import DoorProcess, World, until

UNBOUNDED = QueueSettings(records_max=0)
QUICK = ChannelSettings(visible_seconds=2.0, tries_max=0)


async def under_load(door: Queues, harm: Callable[[], Awaitable[None]], label: str = "load") -> None:
    await door.create_queue("", label, UNBOUNDED)
    made = await door.create_channel("", label, settings=QUICK)
    traffic = Traffic(label, made.definition.channel_id)
    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(traffic.push, door, f"p{number}")
            nursery.start_soon(traffic.consume, door)
        await until(lambda: len(traffic.consumed) > 100)
        await harm()
        before = len(traffic.consumed)
        await until(lambda: len(traffic.consumed) > before + 200)
        traffic.is_over = True
        await until(lambda: not traffic.lost)
        nursery.cancel_scope.cancel()
    traffic.check()


def test_a_channel_that_nobody_consumes_survives_a_kill_of_the_broker(fresh: World) -> None:
    """Its group has an anchor: what was pushed before and after the kill is there, once, from its creation on."""

    async def body(door: Queues) -> None:
        await door.create_queue("", "news")
        await door.push("", "news", [Push(payload=b"before the channel")])
        made = await door.create_channel("", "news")
        await door.push("", "news", [Push(payload=b"%d" % number) for number in range(50)])
        await trio.to_thread.run_sync(fresh.kill)
        await trio.to_thread.run_sync(fresh.start)

        async def pushes() -> bool:
            try:
                await door.push("", "news", [Push(payload=b"after")])
            except Exception:
                return False
            return True

        await until(pushes)
        found: list[bytes] = []
        async with door.consume("", made.definition.channel_id) as consumer:
            while batch := await consumer.next_batch(100, 2.0):
                found += [each.payload for each in batch]
                await consumer.acknowledge([each.id for each in batch])
        assert sorted(set(found)) == sorted([*(b"%d" % number for number in range(50)), b"after"])
        assert len(found) == 51

    fresh.run(body)


def test_a_kill_of_the_broker_under_load_loses_nothing(fresh: World) -> None:
    async def body(door: Queues) -> None:
        async def harm() -> None:
            await trio.to_thread.run_sync(fresh.kill)
            await trio.to_thread.run_sync(fresh.start)

        await under_load(door, harm)

    fresh.run(body)


@pytest.mark.parametrize("which", [0, 1])
def test_a_kill_of_one_of_two_shards_under_load_loses_nothing(two_shards: World, which: int) -> None:
    async def body(door: Queues) -> None:
        async def harm() -> None:
            os.kill(shards_of(two_shards.broker.process.pid)[which], signal.SIGKILL)

        await under_load(door, harm, f"load{which}")

    two_shards.run(body, f"door{which}")


def test_a_door_that_is_killed_gives_back_what_its_consumers_held(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "held")
        channel = (await door.create_channel("", "held")).definition.channel_id
        other = await trio.to_thread.run_sync(DoorProcess, world)
        try:
            other.ask(do="consume", channel=channel, credit=10, answers="nothing")
            await door.push("", "held", [Push(payload=b"%d" % number) for number in range(10)])
            await trio.to_thread.run_sync(other.heard, lambda each: each.get("got"))
            other.kill()
            found: set[bytes] = set()
            async with door.consume("", channel, 10) as consumer:
                while len(found) < 10:
                    batch = await consumer.next_batch(10, 30.0)
                    assert batch
                    found |= {each.payload for each in batch}
                    await consumer.acknowledge([each.id for each in batch])
        finally:
            other.end()

    world.run(body)


def test_a_door_that_comes_back_has_its_messages_at_once(world: World) -> None:
    """Under the same name, before its session is over."""

    async def body(door: Queues) -> None:
        await door.create_queue("", "back")
        channel = (await door.create_channel("", "back")).definition.channel_id
        other = await trio.to_thread.run_sync(DoorProcess, world)
        other.ask(do="consume", channel=channel, credit=10, answers="nothing")
        await door.push("", "back", [Push(payload=b"%d" % number) for number in range(10)])
        await trio.to_thread.run_sync(other.heard, lambda each: each.get("got"))
        other.kill()
        again = await trio.to_thread.run_sync(DoorProcess, world)
        try:
            again.ask(do="consume", channel=channel, credit=10, answers="acknowledge")
            found: set[str] = set()
            with trio.fail_after(5):
                while len(found) < 10:
                    found |= {row[1] for each in list(again.said) for row in each.get("got", [])}
                    await trio.sleep(0.02)
        finally:
            again.end()

    world.run(body)
