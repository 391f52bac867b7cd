"""What a call from asyncio into trio costs: trio as a guest of the loop, and trio on a thread. Decision 65.

    python -m bench.grpc.guest_loop

Prints processor time and latency of calls that do nothing: alone, 200 at once, beside a trio socket that is busy."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import trio

from rumq.services.queues.guest_loop import in_guest, start_guest

SECONDS = 3.0
CALLS, AT_ONCE = 2_000, 200


class Way(Protocol):
    async def start(self) -> None: ...

    async def call(self, function: Callable[[], Awaitable[None]]) -> None: ...

    def spawn(self, function: Callable[[], Awaitable[None]]) -> None: ...

    async def stop(self) -> None: ...


class GuestWay:
    """Trio in this loop."""

    async def start(self) -> None:
        ready = asyncio.Event()

        async def main() -> None:
            async with trio.open_nursery() as self.nursery:
                ready.set()
                await trio.sleep_forever()

        self.ended = start_guest(main)
        await ready.wait()

    async def call(self, function: Callable[[], Awaitable[None]]) -> None:
        await in_guest(self.nursery, function)

    def spawn(self, function: Callable[[], Awaitable[None]]) -> None:
        self.nursery.start_soon(function)

    async def stop(self) -> None:
        self.nursery.cancel_scope.cancel()
        await self.ended


class ThreadWay:
    """Trio on a thread of its own, each call woken there and back."""

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        ready = self.loop.create_future()

        async def main() -> None:
            self.token = trio.lowlevel.current_trio_token()
            async with trio.open_nursery() as self.nursery:
                self.loop.call_soon_threadsafe(ready.set_result, None)
                await trio.sleep_forever()

        self.thread = threading.Thread(target=trio.run, args=(main,))
        self.thread.start()
        await ready

    async def call(self, function: Callable[[], Awaitable[None]]) -> None:
        done = self.loop.create_future()

        async def run() -> None:
            with trio.CancelScope():  # for who is cancelled in asyncio
                await function()
            self.loop.call_soon_threadsafe(done.set_result, None)

        self.spawn(run)
        await done

    def spawn(self, function: Callable[[], Awaitable[None]]) -> None:
        self.token.run_sync_soon(partial(self.nursery.start_soon, function))

    async def stop(self) -> None:
        self.token.run_sync_soon(self.nursery.cancel_scope.cancel)
        await asyncio.to_thread(self.thread.join)


async def busy() -> None:
    """A socket pair that is written and read without a pause."""
    one, other = trio.socket.socketpair()

    async def write() -> None:
        while True:
            await one.send(bytes(4096))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        while True:
            await other.recv(4096)


async def timed(way: Way, is_over: Callable[[int], bool]) -> str:
    found: list[float] = []
    while not is_over(len(found)):
        began = time.perf_counter()
        await way.call(trio.lowlevel.checkpoint)
        found.append(time.perf_counter() - began)
    found.sort()
    return f"p50 {found[len(found) // 2] * 1e6:.0f} µs, p99 {found[len(found) * 99 // 100] * 1e6:.0f} µs"


async def measure(way: Way) -> None:
    name = type(way).__name__
    await way.start()
    print(f"{name}, alone: {await timed(way, lambda count: count == CALLS)}")

    async def hundred() -> None:
        for _ in range(100):
            await way.call(trio.lowlevel.checkpoint)

    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(hundred() for _ in range(AT_ONCE)))
    calls = 100 * AT_ONCE
    a_second = calls / (time.perf_counter() - began)
    print(f"{name}, {AT_ONCE} at once: {a_second:,.0f}/s, {(time.process_time() - used) / calls * 1e6:.1f} µs a call")
    way.spawn(busy)
    until = time.perf_counter() + SECONDS
    print(f"{name}, beside a busy socket: {await timed(way, lambda count: time.perf_counter() > until)}")
    await way.stop()


if __name__ == "__main__":
    for each in (GuestWay, ThreadWay):
        asyncio.run(measure(each()))
