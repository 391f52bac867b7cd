"""The door to the queues: what a call gets while they are off, begin, fail, and are back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from rumq.queues import BadQueueRequest
from rumq.services.contract.faults import CallFault
from rumq.services.queues import queue_door
from rumq.services.queues.queue_door import DISABLED, QueueDoor


class Caller:
    user, permit = "anna", "permit"


class OneCall:
    caller = Caller()


class SomeQueues:
    """In place of `rumq.queues.Queues`. fail: makes its run raise"""

    def __init__(self) -> None:
        self.fail = trio.Event()
        self.is_current = True
        self.asked: list[str] = []

    async def run(self, *, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await self.fail.wait()
        raise RuntimeError("planted")

    def for_caller(self, permit_of: Any) -> SomeQueues:
        self.asked.append(permit_of("anna"))
        return self

    def count(self, user: str) -> int:
        return 7 if user == "anna" else 0


class Told:
    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def __call__(self, name: str, **fields: Any) -> None:
        self.events.append((name, fields["method"]))


CALL: Any = OneCall()


def with_door(body: Callable[[QueueDoor, list[SomeQueues], Told], Awaitable[None]]) -> None:
    async def main() -> None:
        made: list[SomeQueues] = []
        told = Told()

        def make(ports: Any) -> Any:
            made.append(SomeQueues())
            return made[-1]

        door = QueueDoor(object(), told, make)  # type: ignore[arg-type]
        running = asyncio.ensure_future(door.run())
        async with asyncio.timeout(20):
            await body(door, made, told)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


def test_a_call_gets_answers_and_faults_with_the_rights_of_its_caller() -> None:
    async def body(door: QueueDoor, made: list[SomeQueues], told: Told) -> None:
        async def bad(queues: Any) -> None:
            raise BadQueueRequest("it cannot be")

        async def count(queues: Any) -> int:
            return int(queues.count("anna"))

        assert await door.ask(CALL, count) == 7
        assert made[0].asked == ["permit"] and door.state == "" and door.count(CALL) == 7
        with pytest.raises(CallFault, match="ARGUMENT_INVALID: it cannot be"):
            await door.ask(CALL, bad)
        made[0].is_current = False
        assert "does not answer" in door.state

    with_door(body)


def test_a_fault_of_the_engine_ends_its_calls_is_told_and_they_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_door, "AGAIN_SECONDS", 0.0)

    async def body(door: QueueDoor, made: list[SomeQueues], told: Told) -> None:
        async def wait(queues: Any) -> None:
            await trio.sleep_forever()

        async def count(queues: Any) -> int:
            return int(queues.count("anna"))

        waiting = asyncio.ensure_future(door.ask(CALL, wait))
        assert await door.ask(CALL, count) == 7
        made[0].fail.set()
        with pytest.raises(CallFault, match="QUEUES_AWAY"):
            await waiting
        assert told.events == [("grpc.failed", "rumq.v1.Queues")]
        assert await door.ask(CALL, count) == 7
        assert len(made) == 2

    with_door(body)


def test_a_door_without_queues_names_the_setting() -> None:
    async def main() -> None:
        door = QueueDoor(None, Told())

        async def count(queues: Any) -> int:
            return 0

        with pytest.raises(CallFault, match=r"QUEUES_DISABLED: .*queues\.enabled = true"):
            await door.ask(CALL, count)
        assert door.state == DISABLED and door.count(CALL) == 0

    asyncio.run(main())


def test_queues_that_do_not_begin_are_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_door, "READY_SECONDS", 0.0)

    async def main() -> None:
        door = QueueDoor(object(), Told())  # type: ignore[arg-type]

        async def count(queues: Any) -> int:
            return 0

        with pytest.raises(CallFault, match="QUEUES_AWAY: the queues of this node begin"):
            await door.ask(CALL, count)

    asyncio.run(main())
