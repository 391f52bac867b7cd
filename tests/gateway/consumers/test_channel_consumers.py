"""Consumers over HTTP: what they were given stays theirs between requests, nobody else names them, they end alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rumq.gateway.consumers import channel_consumers as module
from rumq.gateway.consumers.channel_consumers import (
    IDLE_SECONDS,
    ChannelConsumers,
    ConsumerHolder,
    HeldConsumer,
    Superseded,
    TooManyConsumers,
)
from rumq.queues import ChannelSettings, Delivered, NoSuchQueue, Push, QueueNotAllowed, QueuesUnavailable
from tests.gateway.queues.fake_queues import FakeQueues

ANNA = ConsumerHolder("anna", "t1", "anna", "10.0.0.1")
BERT = ConsumerHolder("bert", "t2", "bert", "10.0.0.2")
VISIBLE_SECONDS = 300.0
Body = Callable[["Scene"], Awaitable[None]]


class Scene:
    """A queue `news` with the channel `c`. events: reported"""

    def __init__(self, count_max: int) -> None:
        self.queues = FakeQueues(forbidden=["eve"])
        self.events: list[str] = []
        self.consumers = ChannelConsumers(self.queues, count_max, lambda event, **fields: self.events.append(event))

    async def push(self, *payloads: bytes) -> None:
        await self.queues.push("", "news", [Push(payload=each) for each in payloads])

    async def take(self, held: HeldConsumer, count: int = 10, wait: float = 0.0) -> list[bytes]:
        with held.asked():
            return [each.payload for each in await held.take(count, wait)]


def played(body: Body, count_max: int = 8) -> None:
    async def run() -> None:
        scene = Scene(count_max)
        await scene.queues.create_queue("", "news")
        await scene.queues.create_channel("", "news", None, ChannelSettings(visible_seconds=VISIBLE_SECONDS), "c")
        async with trio.open_nursery() as nursery:
            await nursery.start(scene.consumers.run)
            await body(scene)
            nursery.cancel_scope.cancel()

    trio.run(run, clock=MockClock(autojump_threshold=0))


def test_what_a_consumer_was_given_stays_its_own_between_requests() -> None:
    async def body(scene: Scene) -> None:
        await scene.push(b"1", b"2", b"3")
        one, other = (scene.consumers.consumer(ANNA, "C", name, 100) for name in ("one", "other"))
        assert await scene.take(one, 2) == [b"1", b"2"]
        assert await scene.take(other) == [b"3"] and await scene.take(one) == []
        assert scene.consumers.consumer(ANNA, "c", "one", 100) is one, "channel ids are folded"
        with one.asked():
            consumer = await one.wait_consumer()
            ids = [each.id for each in scene.queues.log["news"]]
            assert await consumer.acknowledge(ids) == ids[2:], "the third is another's"

    played(body)


def test_an_idle_consumer_ends_when_what_it_holds_is_visible_to_others_again() -> None:
    async def body(scene: Scene) -> None:
        await scene.push(b"1")
        held = scene.consumers.consumer(ANNA, "c", "one", 100)
        assert await scene.take(held) == [b"1"]
        await trio.sleep(VISIBLE_SECONDS - 1)
        assert scene.consumers.known(ANNA, "c", "one") is held
        await trio.sleep(2)
        assert scene.consumers.count == 0
        with pytest.raises(NoSuchQueue, match="'one'"):
            scene.consumers.known(ANNA, "c", "one")
        again = scene.consumers.consumer(ANNA, "c", "one", 100)
        assert await scene.take(again) == [b"1"], "it was given back"

    played(body)


def test_one_that_holds_nothing_ends_after_a_minute_and_not_while_it_waits() -> None:
    async def body(scene: Scene) -> None:
        held = scene.consumers.consumer(ANNA, "c", None, 100)
        assert len(held.name) >= 16
        assert await scene.take(held, 1, wait=3 * IDLE_SECONDS) == []
        assert scene.consumers.count == 1
        await trio.sleep(IDLE_SECONDS + 1)
        assert scene.consumers.count == 0

    played(body)


def test_extending_keeps_the_consumer_as_well() -> None:
    async def body(scene: Scene) -> None:
        await scene.push(b"1")
        held = scene.consumers.consumer(ANNA, "c", "one", 100)
        assert await scene.take(held) == [b"1"]
        with held.asked():
            assert await held.extend([scene.queues.log["news"][0].id], 3 * VISIBLE_SECONDS) == []
        await trio.sleep(2 * VISIBLE_SECONDS)
        assert scene.consumers.count == 1

    played(body)


def test_of_two_requests_of_a_consumer_the_later_one_gets_the_messages() -> None:
    async def body(scene: Scene) -> None:
        held = scene.consumers.consumer(ANNA, "c", "one", 100)
        ends: list[Any] = []

        async def poll() -> None:
            try:
                ends.append(await scene.take(held, 10, 20.0))
            except Superseded as fault:
                ends.append(fault)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await wait_all_tasks_blocked()
            nursery.start_soon(poll)
            await wait_all_tasks_blocked()
            assert [type(each) for each in ends] == [Superseded]
            await scene.push(b"1")
        assert ends[1:] == [[b"1"]]

    played(body)


def test_a_token_does_not_name_the_consumers_of_another() -> None:
    async def body(scene: Scene) -> None:
        held = scene.consumers.consumer(ANNA, "c", "one", 100)
        with pytest.raises(NoSuchQueue):
            scene.consumers.known(BERT, "c", "one")
        assert scene.consumers.consumer(BERT, "c", "one", 100) is not held

    played(body)


def test_what_is_refused_is_told_and_leaves_nothing() -> None:
    async def body(scene: Scene) -> None:
        for holder, channel, fault in (
            (ANNA, "nothing", NoSuchQueue),
            (ConsumerHolder("eve", "t3", "eve", "x"), "c", QueueNotAllowed),
        ):
            held = scene.consumers.consumer(holder, channel, "one", 100)
            with pytest.raises(fault):
                await scene.take(held)
            assert scene.consumers.count == 0

    played(body)


def test_they_are_bounded_of_all_of_a_token_and_of_a_network() -> None:
    async def body(scene: Scene) -> None:
        consumers = scene.consumers
        for name in ("1", "2"):
            consumers.consumer(ANNA, "c", name, 100)
        with pytest.raises(TooManyConsumers, match="of this network"):
            consumers.consumer(BERT._replace(network=ANNA.network), "c", "1", 100)
        with pytest.raises(TooManyConsumers, match="of this token"):
            consumers.consumer(ANNA._replace(network="10.0.0.3"), "c", "3", 100)
        assert consumers.consumer(ANNA, "c", "1", 100)
        for name in ("1", "2"):
            consumers.consumer(BERT, "c", name, 100)
        with pytest.raises(TooManyConsumers, match="consumers_max"):
            consumers.consumer(ConsumerHolder("carl", "t", "", "10.0.0.9"), "c", "1", 100)
        consumers.end(consumers.known(ANNA, "c", "1"))
        assert consumers.consumer(ANNA, "c", "3", 100)

    played(body, count_max=4)


def test_those_of_a_token_that_is_gone_end() -> None:
    async def body(scene: Scene) -> None:
        held = scene.consumers.consumer(ANNA, "c", "one", 100)
        scene.consumers.consumer(BERT, "c", "one", 100)
        await scene.push(b"1")
        assert await scene.take(held) == [b"1"]
        scene.consumers.recheck(lambda token: token != "t1")
        await wait_all_tasks_blocked()
        assert scene.consumers.count == 1 and scene.queues.own_channels["c"].waiting, "what it held is for others"
        with pytest.raises(QueuesUnavailable):
            await scene.take(held)

    played(body)


def test_an_answer_is_bounded_in_bytes_and_the_rest_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_MAX", 10)

    async def body(scene: Scene) -> None:
        held = scene.consumers.consumer(ANNA, "c", "one", 100)
        await scene.push(b"x" * 50, b"12345", b"67890", b"a", b"b")
        taken = [await scene.take(held, 100) for _ in range(3)]
        assert taken == [[b"x" * 50], [b"12345", b"67890"], [b"a", b"b"]]
        await scene.push(b"c")
        assert await scene.take(held, 100) == [b"c"]

    played(body)


def test_a_fault_of_ours_ends_one_consumer_and_is_reported() -> None:
    async def body(scene: Scene) -> None:
        @asynccontextmanager
        async def broken(*args: object) -> AsyncIterator[Any]:
            raise ZeroDivisionError
            yield

        scene.queues.consume = broken  # type: ignore[assignment]
        with pytest.raises(QueuesUnavailable):
            await scene.take(scene.consumers.consumer(ANNA, "c", "one", 100))
        assert scene.events == ["gateway.failed"] and scene.consumers.count == 0

    played(body)


def test_messages_of_any_size_fit_one_at_least() -> None:
    big = Delivered(None, b"x" * (module.BYTES_MAX + 1), 1, 0)  # type: ignore[arg-type]
    assert module.fitting([big, big]) == 1 and module.fitting([]) == 0
