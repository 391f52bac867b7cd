"""Publish messages when they are due. The clock is an argument."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from rumq.client import Outgoing

TOGETHER_SECONDS = 0.01  # messages due within this time are one batch
TOGETHER_MAX = 1000


class Due(NamedTuple):
    """seconds: after the first message"""

    seconds: float
    message: Outgoing


class Paced(NamedTuple):
    """messages: number of messages; late_s: the largest delay of a message"""

    messages: int
    late_s: float


async def pace(
    messages: Iterable[Due],
    publish: Callable[[list[Outgoing]], Awaitable[object]],
    now: Callable[[], float],
    sleep_until: Callable[[float], Awaitable[None]],
) -> Paced:
    """Publish each message when it is due, never earlier, relative to the arrival of the first."""
    together: list[Due] = []
    begun: float | None = None
    count, late_s = 0, 0.0

    async def send() -> None:
        nonlocal late_s
        assert begun is not None
        due = begun + together[-1].seconds
        await sleep_until(due)
        late_s = max(late_s, now() - begun - together[0].seconds - TOGETHER_SECONDS)
        await publish([one.message for one in together])

    for message in messages:
        begun = now() if begun is None else begun
        if together and (message.seconds - together[0].seconds > TOGETHER_SECONDS or len(together) >= TOGETHER_MAX):
            await send()
            together = []
        together.append(message)
        count += 1
    if together:
        await send()
    return Paced(count, late_s)
