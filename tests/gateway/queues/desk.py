"""The gateway's application over queues in memory: requests of httpx, all in one event loop, so that consumers last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import trio
from trio.testing import MockClock

from tests.gateway.in_process import InProcess
from tests.gateway.queues.fake_queues import FakeQueues

TOKENS = {
    "ops": (("read", "publish", "consume", "administer"), "ops"),
    "app": (("read", "publish", "consume"), "app"),
    "other": (("read", "publish", "consume"), "other"),
    "reader": (("read",), ""),
    "sender": (("publish",), ""),
    "taker": (("consume",), ""),
    "eve": (("read", "publish", "consume", "administer"), "eve"),
}
Body = Callable[["Desk"], Awaitable[None]]


class Desk:
    def __init__(self, path: Path) -> None:
        self.place = InProcess(path, TOKENS)
        queues: Any = FakeQueues(forbidden=["eve"])
        self.place.context.queues.use(queues)
        transport = httpx.ASGITransport(self.place.app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://rumq.localhost:8443")

    async def ask(self, method: str, path: str, body: Any = None, token: str = "ops", **headers: str) -> httpx.Response:
        """body: as JSON, or as it is with a content type"""
        given = {"authorization": f"Bearer {self.place.secrets[token]}", "host": "127.0.0.1:8443", **headers}
        content = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        return await self.client.request(method, f"/api/v1/{path}", content=content, headers=given)

    async def done(self, method: str, path: str, body: Any = None, token: str = "ops", **headers: str) -> Any:
        answer = await self.ask(method, path, body, token, **headers)
        assert answer.status_code in (200, 201), (answer, answer.text)
        return answer.json()

    async def refused(self, status: int, method: str, path: str, body: Any = None, token: str = "ops") -> Any:
        answer = await self.ask(method, path, body, token)
        assert answer.status_code == status, (answer, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["status"] == status and len(problem["detail"]) > 5
        return problem


def at_desk(path: Path, body: Body) -> None:
    async def run() -> None:
        desk = Desk(path)
        async with trio.open_nursery() as nursery:
            await nursery.start(desk.place.context.queues.consumers.run)
            await body(desk)
            nursery.cancel_scope.cancel()
        await desk.client.aclose()
        assert [each for each in desk.place.events if each["event"] == "gateway.failed"] == []

    trio.run(run, clock=MockClock(autojump_threshold=0))
