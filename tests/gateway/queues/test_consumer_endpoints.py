"""Consuming over REST: long polls, acknowledgements, what is not held, the end of a consumer, other content types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.gateway.queues.desk import Desk, at_desk

CONSUMED = "channels/c/messages"


async def filled(desk: Desk, count: int = 3) -> None:
    await desk.done("POST", "queues/news")
    await desk.done("POST", "queues/news/channels", {"id": "c"})
    await pushed(desk, count)


async def pushed(desk: Desk, count: int) -> None:
    if count:
        await desk.done("POST", "queues/news/messages", [{"payload": str(n)} for n in range(count)])


def ids(answer: Any) -> list[str]:
    return [row["id"] for row in answer["messages"]]


def test_messages_are_taken_and_acknowledged(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk)
        taken = await desk.done("GET", f"{CONSUMED}?max=2", token="app")
        assert ids(taken) == ["1@__none__", "2@__none__"] and taken["messages"][0]["tries"] == 1
        consumer = taken["consumer"]
        rest = await desk.done("GET", f"{CONSUMED}?consumer={consumer}", token="app")
        assert ids(rest) == ["3@__none__"] and rest["consumer"] == consumer
        assert (await desk.done("GET", "channels/c"))["in_flight"] == 3
        given = {"consumer": consumer, "acknowledge": ["1@__none__", "2@__none__", "1@__none__", "9@__none__"]}
        done = await desk.done("POST", "channels/c/acknowledgements", given, "app")
        assert done == {"done": 2, "not_held": ["9@__none__"]}
        assert await desk.done("POST", "channels/c/acknowledgements", given, "app") == {
            "done": 0, "not_held": ["1@__none__", "2@__none__", "9@__none__"],
        }  # fmt: skip
        assert (await desk.done("GET", "channels/c"))["depth"] == 1

    at_desk(tmp_path, body)


def test_a_rejected_message_comes_again_and_one_is_held_longer(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk, 2)
        await desk.done("GET", f"{CONSUMED}?consumer=me")
        given = {"consumer": "me", "reject": ["1@__none__"], "extend": ["2@__none__"], "seconds": 100}
        assert await desk.done("POST", "channels/c/acknowledgements", given) == {"done": 2, "not_held": []}
        again = await desk.done("GET", f"{CONSUMED}?consumer=me")
        assert [(row["id"], row["tries"]) for row in again["messages"]] == [("1@__none__", 2)]

    at_desk(tmp_path, body)


def test_a_request_that_waits_is_answered_when_a_message_comes_or_its_time_is_over(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk, 0)
        began = trio.current_time()
        assert ids(await desk.done("GET", f"{CONSUMED}?consumer=me&wait=20")) == []
        assert 20 <= trio.current_time() - began < 21
        found: list[Any] = []

        async def poll() -> None:
            found.append(await desk.done("GET", f"{CONSUMED}?consumer=me&wait=20"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await wait_all_tasks_blocked()
            await pushed(desk, 1)
        assert ids(found[0]) == ["1@__none__"]

    at_desk(tmp_path, body)


def test_of_two_requests_of_one_consumer_the_earlier_one_is_a_conflict(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk, 0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.refused, 409, "GET", f"{CONSUMED}?consumer=me&wait=20")
            await wait_all_tasks_blocked()
            await desk.done("GET", f"{CONSUMED}?consumer=me&wait=1")

    at_desk(tmp_path, body)


def test_a_consumer_of_another_token_or_of_nobody_acknowledges_nothing(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk)
        await desk.done("GET", f"{CONSUMED}?consumer=me", token="app")
        given = {"consumer": "me", "acknowledge": ["1@__none__"]}
        problem = await desk.refused(404, "POST", "channels/c/acknowledgements", given, "other")
        assert "'me'" in problem["detail"]
        await desk.refused(404, "POST", "channels/c/acknowledgements", {**given, "consumer": "you"}, "app")
        await desk.refused(404, "DELETE", "channels/c/consumers/me", token="other")
        assert await desk.done("DELETE", "channels/c/consumers/me", token="app") == {"removed": "me"}
        await desk.refused(404, "DELETE", "channels/c/consumers/me", token="app")
        await wait_all_tasks_blocked()
        assert len(ids(await desk.done("GET", CONSUMED, token="other"))) == 3, "they were given back"

    at_desk(tmp_path, body)


def test_credit_bounds_what_a_consumer_holds(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk, 5)
        assert len(ids(await desk.done("GET", f"{CONSUMED}?consumer=me&credit=2"))) == 2
        assert ids(await desk.done("GET", f"{CONSUMED}?consumer=me&credit=100&wait=1")) == []
        await desk.done("POST", "channels/c/acknowledgements", {"consumer": "me", "acknowledge": ["1@__none__"]})
        assert len(ids(await desk.done("GET", f"{CONSUMED}?consumer=me"))) == 1

    at_desk(tmp_path, body)


def test_consumers_of_a_channel_that_is_deleted_are_told(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk, 0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.refused, 404, "GET", f"{CONSUMED}?consumer=me&wait=20")
            await wait_all_tasks_blocked()
            await desk.done("DELETE", "channels/c")
        assert desk.place.context.queues.consumers.count == 0

    at_desk(tmp_path, body)


def test_in_messagepack_payloads_are_bytes(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk, 1)
        answer = await desk.ask("GET", CONSUMED, accept="application/msgpack")
        assert msgspec.msgpack.decode(answer.content)["messages"][0]["payload"] == b"0"

    at_desk(tmp_path, body)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"consumer": ""},
        {"consumer": "me", "acknowledge": "1@x"},
        {"consumer": "me", "acknowledge": ["x"]},
        {"consumer": "me", "acknowledge": ["0@x"]},
        {"consumer": "me", "acknowledge": ["-1@x"]},
        {"consumer": "me", "acknowledge": ["1" * 30 + "@x"]},
        {"consumer": "me", "acknowledge": ["1@x"] * 1001},
        {"consumer": "me", "extend": ["1@x"], "seconds": 0},
        {"consumer": "me", "reject": ["1@x"], "delay_seconds": -1},
        {"consumer": "me", "ack": []},
        [],
    ],
)
def test_acknowledgements_that_cannot_be_meant_are_refused(tmp_path: Path, given: Any) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk)
        await desk.done("GET", f"{CONSUMED}?consumer=me")
        await desk.refused(400, "POST", "channels/c/acknowledgements", given)
        assert (await desk.done("GET", "channels/c"))["depth"] == 3

    at_desk(tmp_path, body)


@pytest.mark.parametrize("query", ["max=0", "max=1001", "wait=26", "wait=-1", "credit=0", "consumer=", "nope=1"])
def test_parameters_out_of_their_bounds_are_refused(tmp_path: Path, query: str) -> None:
    async def body(desk: Desk) -> None:
        await filled(desk)
        await desk.refused(400, "GET", f"{CONSUMED}?{query}")
        assert desk.place.context.queues.consumers.count == 0

    at_desk(tmp_path, body)
