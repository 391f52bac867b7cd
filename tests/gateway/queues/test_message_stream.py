"""Messages as server-sent events: the consumer's name first, each message with its id, and an end that gives back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rumq.gateway.access.admission import Unauthorized
from rumq.gateway.consumers.channel_consumers import ChannelConsumers, ConsumerHolder
from rumq.gateway.contract.problems import problem_of
from rumq.gateway.handlers.event_stream import KEEP_ALIVE_SECONDS
from rumq.gateway.queues.message_stream import MessageStream
from rumq.queues import Push
from tests.gateway.handlers.test_event_stream import parsed
from tests.gateway.queues.fake_queues import FakeQueues

HOLDER = ConsumerHolder("anna", "t1", "anna", "10.0.0.1")


class Streamed:
    """A stream of the channel `c`, read by a client that leaves when `leave` is set. sent: by then"""

    def __init__(self) -> None:
        self.queues = FakeQueues()
        self.consumers = ChannelConsumers(self.queues, 8, lambda *args, **fields: None)
        self.sent: list[bytes] = []
        self.leave = trio.Event()
        self.is_allowed = True

    async def push(self, count: int) -> None:
        await self.queues.push("", "news", [Push(payload=b"%d" % n) for n in range(count)])

    def check(self) -> None:
        if not self.is_allowed:
            raise Unauthorized("the token was removed")

    async def run(self, credit: int = 100) -> None:
        held = self.consumers.consumer(HOLDER, "c", "me", credit)
        await held.wait_consumer()
        stream = MessageStream(self.consumers, held, nullcontext, self.check, problem_of)

        async def receive() -> Any:
            await self.leave.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            self.sent.append(message.get("body", b""))

        await stream({"type": "http", "method": "GET"}, receive, send)

    @property
    def events(self) -> list[dict[str, str]]:
        return [each for each in parsed(b"".join(self.sent)) if "data" in each]


def streamed(body: Callable[[Streamed], Awaitable[None]], credit: int = 100) -> None:
    async def run() -> None:
        made = Streamed()
        await made.queues.create_queue("", "news")
        await made.queues.create_channel("", "news", None, None, "c")
        async with trio.open_nursery() as nursery:
            await nursery.start(made.consumers.run)
            nursery.start_soon(made.run, credit)
            await wait_all_tasks_blocked()
            await body(made)
            nursery.cancel_scope.cancel()

    trio.run(run, clock=MockClock(autojump_threshold=0))


def test_the_name_of_the_consumer_comes_first_then_messages_as_they_come() -> None:
    async def body(made: Streamed) -> None:
        await made.push(2)
        await wait_all_tasks_blocked()
        first, *messages = made.events
        assert first["event"] == "consumer" and json.loads(first["data"]) == {"consumer": "me"}
        assert [each["id"] for each in messages] == ["1@__none__", "2@__none__"]
        assert [json.loads(each["data"])["payload"] for each in messages] == ["0", "1"]

    streamed(body)


def test_what_is_not_acknowledged_bounds_what_is_sent_and_an_acknowledgement_goes_on() -> None:
    async def body(made: Streamed) -> None:
        await made.push(5)
        await wait_all_tasks_blocked()
        assert len(made.events) == 1 + 2
        consumer = await made.consumers.known(HOLDER, "c", "me").wait_consumer()
        await consumer.acknowledge([each.id for each in made.queues.log["news"][:2]])
        await trio.sleep(KEEP_ALIVE_SECONDS + 1)
        assert len(made.events) == 1 + 4

    streamed(body, credit=2)


def test_a_client_that_leaves_gives_back_what_it_held() -> None:
    async def body(made: Streamed) -> None:
        await made.push(2)
        await wait_all_tasks_blocked()
        made.leave.set()
        await wait_all_tasks_blocked()
        assert made.consumers.count == 0 and len(made.queues.own_channels["c"].waiting) == 2

    streamed(body)


def test_it_lives_while_nothing_comes_and_ends_with_its_token_or_channel() -> None:
    async def body(made: Streamed) -> None:
        await trio.sleep(10 * KEEP_ALIVE_SECONDS)
        assert made.sent.count(b": \n\n") >= 9 and made.consumers.count == 1
        made.is_allowed = False
        await trio.sleep(2 * KEEP_ALIVE_SECONDS)
        end = made.events[-1]
        assert end["event"] == "end" and json.loads(end["data"])["status"] == 401
        assert made.consumers.count == 0

    streamed(body)

    async def deleted(made: Streamed) -> None:
        await made.queues.delete_channel("", "c")
        await wait_all_tasks_blocked()
        assert json.loads(made.events[-1]["data"])["status"] == 404

    streamed(deleted)


def test_a_second_stream_of_the_same_consumer_ends_the_first_one() -> None:
    async def body(made: Streamed) -> None:
        held = made.consumers.known(HOLDER, "c", "me")
        with trio.move_on_after(1), held.asked():
            await held.take(1, 5.0)
        assert json.loads(made.events[-1]["data"])["status"] == 409

    streamed(body)
