"""Callers that ask for what they may not have, and consumers that misbehave: named, bounded, nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from rumq.queues import (
    BadQueueRequest,
    ChannelSettings,
    Consumer,
    MessageId,
    NoSuchQueue,
    Push,
    Pushed,
    QueueError,
    QueueExists,
    QueueFull,
    QueueNotAllowed,
    Queues,
    QueueSettings,
)
from rumq.queues.engine import engines
from rumq.queues.link.member_link import RECEIVE_BYTES_MAX
from tests.queues.world import World, until

RULES = """
[[rule]]
users = ["anna"]
allow = ["publish", "subscribe", "replay", "retain"]
topics = ["$queues/news/#"]

[[rule]]
users = ["ben"]
allow = ["publish", "subscribe", "replay", "retain"]
topics = ["$queues/sport/#"]

[[rule]]
users = ["carl"]
allow = ["publish"]
topics = ["$queues/news/sport"]

[[rule]]
users = ["dora"]
allow = ["subscribe"]
topics = ["$queues/news/#"]
"""
HUGE = "x" * 65_536


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("tenants")
    rules = folder / "rules.toml"
    rules.write_text(RULES)
    made = World(folder, f"auth.rules_file={rules}", rules=RULES)
    made.start()
    yield made
    made.broker.end()


async def take_on(consumer: Consumer) -> None:
    while True:
        await consumer.next_batch(1, 0.3)


def test_rules_hold_at_every_call(tenants: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("anna", "news")
        await door.create_queue("ben", "sport")
        made = await door.create_channel("anna", "news")
        forged = made.definition.channel_id
        await door.push("anna", "news", [Push(payload=b"secret")])

        # Another tenant: for it there is no such queue or channel, whatever it asks.
        for user in ("ben", "", "nobody"):
            for call in (
                door.delete_channel(user, forged), door.channel(user, forged), door.purge(user, forged),
                door.queue(user, "news"), door.delete_queue(user, "news"), door.peek(user, "NEWS"),
                door.topics(user, "news"), door.redrive(user, "news"), door.channels(user, "news"),
                door.push(user, "news", [Push(payload=b"forged")]), door.create_channel(user, "news"),
            ):  # fmt: skip
                with pytest.raises(NoSuchQueue, match=r"there is no (queue|channel)"):
                    await call
            with pytest.raises(NoSuchQueue):
                async with door.consume(user, forged):
                    pass
            assert forged not in [each.definition.channel_id for each in await door.channels(user)]
            assert "news" not in [each.definition.label for each in await door.queues(user)]
        with pytest.raises(QueueNotAllowed, match=r"retain on \$queues/news would"):
            await door.create_queue("ben", "news")

        # Who may push to one topic may do that alone.
        right, wrong = await door.push("carl", "news", [Push(payload=b"1", topic="Sport"), Push(payload=b"2")])
        assert isinstance(right, Pushed) and isinstance(wrong, QueueNotAllowed)
        # Who may consume may not look into the past, change or purge.
        async with door.consume("dora", forged) as consumer:
            assert {each.payload for each in await consumer.next_batch(10, 5.0)} <= {b"secret", b"1"}
        for call in (
            door.peek("dora", "news"), door.purge("dora", forged), door.delete_channel("dora", forged),
            door.create_channel("dora", "news"), door.redrive("dora", "news"), door.delete_queue("dora", "news"),
        ):  # fmt: skip
            with pytest.raises(QueueNotAllowed, match="the rules do not let user 'dora'"):
                await call
        assert [each.definition.label for each in await door.queues("dora")] == ["news", "news.dead"]

    tenants.run(body)


def test_rules_that_change_end_a_consumer(tenants: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("anna", "news")
        made = await door.create_channel("anna", "news")
        async with door.consume("dora", made.definition.channel_id) as consumer:
            kept, tenants.rules = tenants.rules, World(Path("/"), rules="[[rule]]\nallow=['will']\ntopics=['#']").rules
            try:
                with pytest.raises(QueueNotAllowed):
                    await take_on(consumer)
            finally:
                tenants.rules = kept

    tenants.run(body)


@pytest.mark.parametrize(
    "label", ["", HUGE, "é" * 101, "a/b", "a+", "#", "$config", "$queues", ".dead", "a\0b", "a\nb", "\ud800", "\ufdd0x"]
)
def test_a_label_that_cannot_be_is_refused_with_a_short_sentence(world: World, label: str) -> None:
    async def body(door: Queues) -> None:
        for call in (door.create_queue("", label), door.push("", label, [Push(payload=b"")]), door.queue("", label)):
            with pytest.raises(BadQueueRequest) as caught:
                await call
            assert len(str(caught.value)) < 300

    world.run(body)


@pytest.mark.parametrize("channel_id", ["", HUGE, "../../etc", "a/b", "$anchor", "#", "%s", "no-such", "\0"])
def test_a_bad_channel_id_is_refused_and_nothing_else(world: World, channel_id: str) -> None:
    async def body(door: Queues) -> None:
        for call in (door.channel("", channel_id), door.delete_channel("", channel_id), door.purge("", channel_id)):
            with pytest.raises((BadQueueRequest, NoSuchQueue)):
                await call
        with pytest.raises((BadQueueRequest, NoSuchQueue)):
            async with door.consume("", channel_id):
                pass
        assert await door.queues("") is not None

    world.run(body)


def test_one_message_that_cannot_be_pushed_is_no_others_fault(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "mixed")
        bad = [
            Push(payload=b"", topic="__NONE__"), Push(payload=b"", topic=HUGE), Push(payload=b"", topic="a/#"),
            Push(payload=b"", key=HUGE), Push(payload=b"", headers=(("a", "b\0"),)), Push(payload=bytes(17 << 20)),
            Push(payload=b"", headers=(("x", "y"),) * 101), Push(payload=b"", content_type=HUGE),
            Push(payload=b"", delay_seconds=-1), Push(payload=b"", delay_seconds=1e12),
            Push(payload=b"", expiry_seconds=0), Push(payload=b"", delay_seconds=float("nan")),
        ]  # fmt: skip
        good = Push(payload=b"good", headers=(("rumq-offset", "77"), ("a", "b")))
        results = await door.push("", "mixed", [good, *bad, good])
        assert [isinstance(each, Pushed) for each in results] == [True, *[False] * len(bad), True]
        assert all(isinstance(each, BadQueueRequest) for each in results[1:-1]), results
        found = await door.peek("", "mixed")
        assert [(str(each.id), each.headers) for each in found] == [
            ("1@__none__", (("a", "b"),)), ("2@__none__", (("a", "b"),)),
        ]  # fmt: skip

    world.run(body)


def test_a_poison_message_becomes_a_dead_letter_whichever_way_it_fails(world: World) -> None:
    """Rejected, overdue, its consumer gone: each is a try, over several engines; then it is out of the way."""

    async def body(first: Queues, other: Queues) -> None:
        await first.create_queue("", "poisoned")
        settings = ChannelSettings(visible_seconds=0.3, tries_max=4)
        made = await first.create_channel("", "poisoned", settings=settings)
        channel = made.definition.channel_id
        await first.push("", "poisoned", [Push(payload=b"poison", key="k"), Push(payload=b"fine")])
        async with first.consume("", channel, 1) as consumer:
            (given,) = await consumer.next_batch(1, 5.0)
            assert (given.payload, given.tries) == (b"poison", 1)
            await consumer.reject([given.id])
            (given,) = await consumer.next_batch(1, 5.0)
            assert (given.payload, given.tries) == (b"poison", 2)
            (given,) = await consumer.next_batch(1, 5.0)  # the last one is overdue
            assert (given.payload, given.tries) == (b"poison", 3)
        # Its consumer is gone, with its engine: another one counts on.
        await until(lambda: has_tries(other, channel, given.id, 3))
        async with other.consume("", channel, 1) as consumer:
            (given,) = await consumer.next_batch(1, 5.0)
            assert (given.payload, given.tries) == (b"poison", 4)
            await consumer.reject([given.id])
            (given,) = await consumer.next_batch(1, 5.0)
            assert given.payload == b"fine"
            await consumer.acknowledge([given.id])
            await until(lambda: has_dead(other))
        (letter,) = await other.peek("", "poisoned.dead")
        assert (letter.payload, letter.key, letter.dead_tries) == (b"poison", "k", 4)
        assert letter.origin == "poisoned/1@__none__"
        assert await first.redrive("", "poisoned") == 1
        async with first.consume("", channel, 1) as consumer:
            (given,) = await consumer.next_batch(1, 5.0)
            assert (given.payload, given.tries, str(given.id)) == (b"poison", 1, "3@__none__")

    world.run(body, "first", "other")


def test_a_dead_letter_is_made_once_though_the_last_consumer_leaves_at_once(world: World) -> None:
    """Nobody consumes afterwards: what its engine does not finish would wait, or come a second time, to the next."""
    leavings = 12

    async def body(door: Queues) -> None:
        await door.create_queue("", "left")
        made = await door.create_channel("", "left", settings=ChannelSettings(tries_max=1))
        channel = made.definition.channel_id
        for number in range(leavings):
            await door.push("", "left", [Push(payload=b"%d" % number)])
            async with door.consume("", channel, 1) as consumer:
                (given,) = await consumer.next_batch(1, 5.0)
                await consumer.reject([given.id])
                for _ in range(number):
                    await trio.lowlevel.checkpoint()  # the letter is on its way, a bit further each time
            await until(lambda: door._engines.maybe_engine(channel) is None)
            letters = await door.peek("", "left.dead", messages_max=2 * leavings)
            assert [each.payload for each in letters] == [b"%d" % each for each in range(number + 1)]

    world.run(body)


def has_tries(door: Queues, channel: str, message_id: MessageId, tries: int) -> bool:
    return door._follower.tries.of(channel, message_id) == tries


async def has_dead(door: Queues) -> bool:
    return bool(await door.peek("", "poisoned.dead"))


def test_a_consumer_that_stops_reading_keeps_no_more_than_its_credit(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "slow", QueueSettings(records_max=0))
        channel = (await door.create_channel("", "slow")).definition.channel_id
        await door.push("", "slow", [Push(payload=b"%d" % n) for n in range(500)])
        async with door.consume("", channel, 10) as slow, door.consume("", channel, 10) as quick:
            held = await slow.next_batch(1000, 5.0)
            assert len(held) == 10 and await slow.next_batch(1, 0.05) == []
            found: list[bytes] = []
            while len(found) < 490:
                batch = await quick.next_batch(1000, 5.0)
                assert 0 < len(batch) <= 10
                found += [each.payload for each in batch]
                await quick.acknowledge([each.id for each in batch])
            engine = door._engines.maybe_engine(channel)
            assert engine is not None and len(engine.state) <= 10 + 25
            assert not {each.payload for each in held} & set(found)

    world.run(body)


def test_an_engine_whose_consumers_are_slow_leaves_the_rest_in_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credit counts messages, which may be large: an engine has a bound of bytes, and one message beyond it."""
    monkeypatch.setattr(engines, "BYTES_MAX", 4 << 20)

    async def body(door: Queues) -> None:
        await door.create_queue("", "heavy", QueueSettings(records_max=0))
        channel = (await door.create_channel("", "heavy")).definition.channel_id
        await door.push("", "heavy", [Push(payload=bytes(400_000))] * 30)
        async with door.consume("", channel, 100) as consumer:
            engine = door._engines.maybe_engine(channel)
            assert engine is not None
            await until(lambda: engine.state.size > 1 << 20)
            largest = 0
            for _ in range(30):
                (given,) = await consumer.next_batch(100, 10.0, 500_000)
                largest = max(largest, engine.state.size)
                await consumer.acknowledge([given.id])
            assert largest <= (1 << 20) + RECEIVE_BYTES_MAX + 400_200, largest
            assert engine.state.size == 0

    world.run(body)


def test_definitions_that_a_door_has_missed_are_found_when_it_reads_again(world: World) -> None:
    async def body(door: Queues, other: Queues) -> None:
        await door.create_queue("", "missed")
        await other.queue("", "missed")
        found = await other.rebuild("", "MISSED")
        assert not found.was_stale and found.queue.definition.label == "missed"
        assert [(each.stream, each.offline) for each in found.partitions] == [("queues", None)] and not found.missing
        del other._follower.registry.queues["missed"]  # as if it had missed it
        with pytest.raises(NoSuchQueue):
            await other.queue("", "missed")
        found = await other.rebuild("", "missed")
        assert found.was_stale and other.is_current
        assert found.queue.definition == (await door.queue("", "missed")).definition
        assert not (await other.rebuild("", "missed")).was_stale

    world.run(body, "door", "other")


def test_acknowledgements_of_what_one_does_not_hold_change_nothing(world: World) -> None:
    async def body(door: Queues) -> None:
        await door.create_queue("", "acks")
        channel = (await door.create_channel("", "acks")).definition.channel_id
        await door.push("", "acks", [Push(payload=b"1")])
        invented = [MessageId("__none__", 1), MessageId("__none__", 99), MessageId(HUGE, 1), MessageId("x", -1)]
        async with door.consume("", channel, 1) as owner, door.consume("", channel, 1) as thief:
            (given,) = await owner.next_batch(1, 5.0)
            assert await thief.acknowledge(invented) == invented
            assert await thief.reject(invented) == invented
            assert await thief.extend(invented, 5.0) == invented
            assert await owner.acknowledge([given.id]) == []

    world.run(body)


def test_deleting_a_queue_takes_its_messages_and_channels_and_nobody_elses(world: World) -> None:
    async def body(door: Queues, other: Queues) -> None:
        for label in ("gone", "gone-not", "kept"):
            await door.create_queue("", label)
        doomed = (await door.create_channel("", "gone")).definition.channel_id
        kept = [(await door.create_channel("", each)).definition.channel_id for each in ("gone-not", "kept")]
        for label in ("gone", "gone-not", "kept"):
            await door.push("", label, [Push(payload=label.encode())])
        async with other.consume("", doomed) as consumer:
            await consumer.next_batch(1, 5.0)
            await door.delete_queue("", "GONE")
            with pytest.raises(NoSuchQueue, match="was deleted"):
                await take_on(consumer)
        for call in (door.queue("", "gone"), door.channel("", doomed), door.push("", "gone", [Push(payload=b"")])):
            with pytest.raises(NoSuchQueue):
                await call
        # The next one of that label begins empty.
        await door.create_queue("", "gone")
        again = (await door.create_channel("", "gone", channel_id=doomed)).definition.channel_id
        assert await door.peek("", "gone") == []
        assert (await door.queue("", "gone")).figures.depth_records == 0
        async with door.consume("", again) as consumer:
            assert await consumer.next_batch(1, 0.5) == []
        for label, channel in zip(("gone-not", "kept"), kept, strict=True):
            async with door.consume("", channel) as consumer:
                assert [each.payload for each in await consumer.next_batch(9, 5.0)] == [label.encode()]

    world.run(body, "door", "other")


def test_what_exists_is_not_created_again_with_other_settings(world: World) -> None:
    async def body(door: Queues) -> None:
        made = await door.create_queue("", "once", QueueSettings(records_max=5))
        assert (await door.create_queue("", "ONCE", QueueSettings(records_max=5))).definition == made.definition
        with pytest.raises(QueueExists):
            await door.create_queue("", "once", QueueSettings(records_max=6))
        one = await door.create_channel("", "once", "T", channel_id="Workers")
        assert (await door.create_channel("", "once", "t", channel_id="workers")).definition == one.definition
        with pytest.raises(QueueExists):
            await door.create_channel("", "once", "other", channel_id="workers")
        for bad in (QueueSettings(ttl_seconds=10**9), QueueSettings(ttl_seconds=7200), QueueSettings(records_max=-1)):
            with pytest.raises(BadQueueRequest):
                await door.create_queue("", "bad", bad)
        with pytest.raises(BadQueueRequest):
            await door.create_channel("", "once", settings=ChannelSettings(visible_seconds=0.0))

    world.run(body)


def test_queues_channels_and_delays_are_bounded(fresh: World) -> None:
    async def body(door: Queues) -> None:
        for number in range(3):
            await door.create_queue("", f"q{number}")
        with pytest.raises(QueueFull, match=r"queues\.queues_max"):
            await door.create_queue("", "q3")
        settings = ChannelSettings(dead_letters="drop")
        for _ in range(4):
            await door.create_channel("", "q0", settings=settings)
        with pytest.raises(QueueFull, match=r"queues\.channels_max"):
            await door.create_channel("", "q0", settings=settings)
        results = await door.push("", "q0", [Push(payload=b"", delay_seconds=30.0)] * 7)
        assert [isinstance(each, QueueFull) for each in results] == [False] * 5 + [True] * 2

        async def is_full() -> bool:
            """The gateway is a door too, and waits for some of them, beyond the bound of this one."""
            results = await door.push("", "q0", [Push(payload=b"", delay_seconds=30.0)] * 7)
            return all(isinstance(each, QueueFull) for each in results)

        await until(is_full)
        assert 5 <= len(door._delays) < 12

    fresh.run(body, queues_max=3, channels_max=4, delayed_max=5)


def test_an_error_is_one_of_the_family(world: World) -> None:
    async def body(door: Queues) -> None:
        with pytest.raises(QueueError) as caught:
            await door.queue("", "no-such-queue")
        assert caught.value.kind == "not_found"
        await trio.lowlevel.checkpoint()

    world.run(body)
