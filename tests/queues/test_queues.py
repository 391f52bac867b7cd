"""Queues on a real broker: what each call does. docs/reference/queues.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from rumq.queues import ChannelSettings, MessageId, Push, Pushed, QueueFull, Queues, QueueSettings, QueuesUnavailable
from tests.queues.world import World, until

SMALL = 'stream=[{name="queues",filters=["$queues/#"],segment_bytes_max=65536,retention_seconds_max=2}]'


async def everything(door: Queues, channel: str, wait_seconds: float = 1.0) -> list[bytes]:
    found: list[bytes] = []
    async with door.consume("", channel, 1000) as consumer:
        while batch := await consumer.next_batch(1000, wait_seconds):
            found += [each.payload for each in batch]
            await consumer.acknowledge([each.id for each in batch])
    return found


def test_each_channel_sees_every_message_and_one_with_a_topic_its_topic(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "News")
        whole = (await door.create_channel("", "news")).definition.channel_id
        other = (await door.create_channel("", "NEWS")).definition.channel_id
        sport = (await door.create_channel("", "news", "Sport")).definition.channel_id
        pushed = await door.push(
            "", "nEWS", [Push(payload=b"1", topic="SPORT"), Push(payload=b"2"), Push(payload=b"3", topic="a/b")]
        )
        assert pushed == [
            Pushed(MessageId("sport", 1)), Pushed(MessageId("__none__", 1)), Pushed(MessageId("a/b", 1)),
        ]  # fmt: skip
        assert sorted(await everything(door, whole)) == sorted(await everything(door, other)) == [b"1", b"2", b"3"]
        assert await everything(door, sport) == [b"1"]
        assert await door.topics("", "news") == ["__none__", "a/b", "sport"]

    world.run(body)


def test_a_full_queue_refuses_and_says_so(world: World) -> None:
    async def body(door: Queues, other: Queues) -> None:
        await door.create_queue("", "small", QueueSettings(records_max=10))
        channel = (await door.create_channel("", "small")).definition.channel_id
        results = await door.push("", "small", [Push(payload=b"%d" % n) for n in range(15)])
        assert [isinstance(each, QueueFull) for each in results] == [False] * 10 + [True] * 5
        refused = results[-1]
        assert isinstance(refused, QueueFull) and (refused.depth, refused.depth_max) == (10, 10)
        assert "10 messages" in str(refused) and "purge" in str(refused)
        # At another door too, and until they are consumed.
        assert isinstance((await other.push("", "small", [Push(payload=b"x")]))[0], QueueFull)
        assert (await door.queue("", "small")).figures.depth_records == 10
        assert len(await everything(other, channel)) == 10
        await until(lambda: is_taken(door, "small"))

    world.run(body, "door", "other")


async def is_taken(door: Queues, label: str) -> bool:
    return isinstance((await door.push("", label, [Push(payload=b"y")]))[0], Pushed)


def test_a_full_queue_in_bytes_refuses(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "bytes", QueueSettings(records_max=0, bytes_max=10_000))
        await door.create_channel("", "bytes")
        await door.push("", "bytes", [Push(payload=bytes(6000)), Push(payload=bytes(6000))])
        await until(lambda: is_deep(door, "bytes", 12_000))
        assert isinstance((await door.push("", "bytes", [Push(payload=b"x")]))[0], QueueFull)

    world.run(body)


async def is_deep(door: Queues, label: str, size: int) -> bool:
    return (await door.queue("", label)).figures.depth_bytes >= size


def test_a_full_queue_drops_its_oldest_and_counts_them(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "ring", QueueSettings(records_max=10, when_full="drop-oldest"))
        channel = (await door.create_channel("", "ring")).definition.channel_id
        for first in range(0, 50, 10):
            results = await door.push("", "ring", [Push(payload=b"%02d" % n) for n in range(first, first + 10)])
            assert all(isinstance(each, Pushed) for each in results)
            await until(lambda first=first: has_dropped(door, first))  # type: ignore[misc]
        assert sorted(await everything(door, channel)) == [b"%02d" % n for n in range(40, 50)]
        name, fields = next(each for each in world.told if each[0] == "queues.dropped")
        assert name and fields["queue"] == "ring" and fields["records"] >= 1

    world.run(body)


async def has_dropped(door: Queues, count: int) -> bool:
    return (await door.queue("", "ring")).figures.dropped == count


def test_a_delayed_message_comes_when_it_is_due(world: World) -> None:
    async def body(door: Queues, other: Queues) -> None:
        await door.create_queue("", "later")
        channel = (await door.create_channel("", "later")).definition.channel_id
        began = trio.current_time()
        pushes = [
            Push(payload=b"2", delay_seconds=1.2, key="k"),
            Push(payload=b"1", delay_seconds=0.6),
            Push(payload=b"0"),
        ]
        assert [getattr(each, "id", None) for each in await door.push("", "later", pushes)] == [
            None, None, MessageId("__none__", 1),
        ]  # fmt: skip
        came: list[tuple[bytes, float]] = []
        async with other.consume("", channel) as consumer:
            while len(came) < 3:
                for each in await consumer.next_batch(1, 10.0):
                    came.append((each.payload, trio.current_time() - began))
                    await consumer.acknowledge([each.id])
                    assert each.key == ("k" if each.payload == b"2" else None)
        assert [payload for payload, _ in came] == [b"0", b"1", b"2"]
        assert came[1][1] >= 0.6 and came[2][1] >= 1.2

    world.run(body, "door", "other")


def test_a_delayed_message_of_a_queue_that_was_deleted_goes_nowhere(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "short")
        await door.push("", "short", [Push(payload=b"old", delay_seconds=1.0)] * 20)
        await door.delete_queue("", "short")
        await door.create_queue("", "short")
        channel = (await door.create_channel("", "short")).definition.channel_id
        # This door waited for some of them, and the gateway for the others.
        assert await everything(door, channel, 2.5) == []

    world.run(body)


def test_keys_are_in_order_over_several_consumers(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "keys", QueueSettings(records_max=0))
        settings = ChannelSettings(is_ordered=True, visible_seconds=0.5, tries_max=0)
        channel = (await door.create_channel("", "keys", settings=settings)).definition.channel_id
        pushes = [Push(payload=b"%d" % n, key=f"k{n % 7}", topic=f"t{n % 7}") for n in range(280)]
        await door.push("", "keys", pushes)
        done: list[int] = []
        held: set[str | None] = set()

        async def work(number: int) -> None:
            tries = 0
            async with door.consume("", channel, 5) as consumer:
                while len(done) < 280:
                    for each in await consumer.next_batch(5, 0.5):
                        assert each.key not in held, "one message of a key at a time"
                        tries += 1
                        if tries % 11 == number:
                            await consumer.reject([each.id])
                            continue
                        held.add(each.key)
                        await trio.sleep(0.002)
                        held.discard(each.key)
                        done.append(int(each.payload))
                        await consumer.acknowledge([each.id])

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(work, number)
        for key in range(7):
            assert [n for n in done if n % 7 == key] == list(range(key, 280, 7))

    world.run(body)


def test_an_ordered_channel_is_served_by_one_door(world: World) -> None:
    async def body(door: Queues, other: Queues) -> None:
        await door.create_queue("", "one")
        settings = ChannelSettings(is_ordered=True)
        channel = (await door.create_channel("", "one", settings=settings)).definition.channel_id
        async with door.consume("", channel) as first:
            assert await first.next_batch(1, 0.2) == []
            async with other.consume("", channel) as second:
                await until(lambda: door._engines.maybe_engine(channel) is None)
                await door.push("", "one", [Push(payload=b"1")])
                with pytest.raises(QueuesUnavailable, match="another process serves"):
                    await first.next_batch(1, 0.1)
                assert [each.payload for each in await second.next_batch(1, 5.0)] == [b"1"]

    world.run(body, "door", "other")


def test_purge_drops_what_a_channel_has_and_leaves_others_alone(two_shards: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "purged", QueueSettings(records_max=0))
        one = (await door.create_channel("", "purged")).definition.channel_id
        other = (await door.create_channel("", "purged")).definition.channel_id
        await door.push("", "purged", [Push(payload=b"%d" % n, topic=f"t{n % 9}") for n in range(3000)])
        assert await door.purge("", one) == 3000
        assert await everything(door, one, 0.3) == []
        assert len(await everything(door, other)) == 3000

    two_shards.run(body)


def test_peek_takes_nothing_and_shows_no_expired_message(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "seen")
        channel = (await door.create_channel("", "seen")).definition.channel_id
        pushes = [Push(payload=b"short", expiry_seconds=1), *(Push(payload=b"%d" % n, topic="t") for n in range(5))]
        await door.push("", "seen", pushes)
        assert len(await door.peek("", "seen")) == 6
        assert [each.payload for each in await door.peek("", "seen", "T", messages_max=2)] == [b"0", b"1"]
        await until(lambda: is_seen(door, [b"%d" % n for n in range(5)]))
        assert sorted(await everything(door, channel)) == [b"%d" % n for n in range(5)]

    world.run(body)


async def is_seen(door: Queues, payloads: list[bytes]) -> bool:
    return [each.payload for each in await door.peek("", "seen")] == payloads


@pytest.fixture
def small(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, SMALL, "queues.ttl_seconds_max=2")
    made.start()
    yield made
    made.broker.end()


def test_bytes_of_expired_messages_leave_the_disk(small: World) -> None:
    """Whole segments, once their newest record is older than the longest time to live."""
    folder = small.data / "queues"

    def size() -> int:
        return sum(each.stat().st_blocks * 512 for each in folder.rglob("*.seg"))

    async def body(door: Queues) -> None:
        await door.create_queue("", "gone", QueueSettings(ttl_seconds=1, records_max=0))
        for _ in range(40):
            results = await door.push("", "gone", [Push(payload=bytes(1000))] * 25)
            assert all(isinstance(each, Pushed) for each in results)
        await until(lambda: size() < 250_000, 50)  # of 1,000,000 that were pushed

    small.run(body)


def test_a_door_that_begins_waits_until_it_knows_what_there_is(world: World) -> None:
    """It says of no queue that there is none before it has read the definitions."""

    async def body(door: Queues) -> None:
        await door.create_queue("", "known")
        await door.create_channel("", "known", channel_id="known-to-all")
        for call in (
            lambda late: late.push("", "known", [Push(payload=b"x")]),
            lambda late: late.channel("", "known-to-all"),
            lambda late: late.create_queue("", "known"),
        ):
            late = Queues(world.ports("late"))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(late.run)
                assert await call(late)
                assert "known" in [each.definition.label for each in await late.queues("")]
                nursery.cancel_scope.cancel()

    world.run(body)
