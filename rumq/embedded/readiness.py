"""Wait until a descriptor can be read: as a thread, as a task of trio, as a task of asyncio.

One coroutine starts and ends a broker for all three; the blocking one never suspends, so that `run_now` is its loop."""

from __future__ import annotations

import asyncio
import select
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
Wait = Callable[[int, float], Awaitable[None]]  # descriptor, seconds at most


async def wait_blocking(fd: int, seconds: float) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll(seconds * 1000)


async def wait_as_task(fd: int, seconds: float) -> None:
    """Of the loop that runs: trio's or asyncio's."""
    trio = sys.modules.get("trio")  # a program of asyncio need not import it
    if trio is not None and trio.lowlevel.in_trio_task():
        with trio.move_on_after(seconds):
            await trio.lowlevel.wait_readable(fd)
        return
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    loop.add_reader(fd, is_readable.set)
    try:
        await asyncio.wait_for(is_readable.wait(), seconds)
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(fd)


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that only waits by `wait_blocking`, and return what it returns."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise RuntimeError("it waits for something else than a descriptor")
