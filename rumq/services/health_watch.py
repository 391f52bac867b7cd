"""Whether this node's broker answers, for the health service: it is asked every two seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

SECONDS = 2.0


State = TypeVar("State")


async def watch_health(answers: Callable[[], Awaitable[State]], say: Callable[[State], Awaitable[None]]) -> None:
    """answers: whether the broker does, and what else is told; say: called at each change. Until cancelled."""
    known: State | None = None
    while True:
        found = await answers()
        if found != known:
            known = found
            await say(found)
        await asyncio.sleep(SECONDS)
