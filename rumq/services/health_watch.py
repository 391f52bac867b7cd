"""Whether this node's broker answers, for the health service: it is asked every two seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

SECONDS = 2.0


async def watch_health(answers: Callable[[], Awaitable[bool]], say: Callable[[bool], Awaitable[None]]) -> None:
    """answers: whether the broker does; say: called at each change. Until cancelled."""
    known = None
    while True:
        found = await answers()
        if found != known:
            known = found
            await say(found)
        await asyncio.sleep(SECONDS)
