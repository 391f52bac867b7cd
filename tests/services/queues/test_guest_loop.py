"""trio in the asyncio loop: results, faults and ends cross in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from rumq.services.queues.guest_loop import GuestEnded, in_guest, start_guest


class Guest:
    """A nursery in trio, while the body runs in asyncio."""

    def __init__(self) -> None:
        self.nursery: Any = None

    def run(self, body: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            ready = asyncio.Event()

            async def hold() -> None:
                async with trio.open_nursery() as nursery:
                    self.nursery = nursery
                    ready.set()
                    await trio.sleep_forever()

            ended = start_guest(hold)
            await ready.wait()
            try:
                async with asyncio.timeout(20):
                    await body()
            finally:
                self.nursery.cancel_scope.cancel()
                await ended

        asyncio.run(main())


def test_a_result_and_a_fault_cross() -> None:
    guest = Guest()

    async def half(number: int) -> float:
        await trio.lowlevel.checkpoint()
        if number < 0:
            raise ValueError("negative")
        return number / 2

    async def body() -> None:
        assert await asyncio.gather(*(in_guest(guest.nursery, half, n) for n in range(200))) == [
            n / 2 for n in range(200)
        ]
        with pytest.raises(ValueError, match="negative"):
            await in_guest(guest.nursery, half, -1)
        assert await in_guest(guest.nursery, half, 4) == 2

    guest.run(body)


def test_who_is_cancelled_in_asyncio_has_ended_in_trio_when_it_goes_on() -> None:
    guest, seen = Guest(), []

    async def wait() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
                seen.append("ended")

    async def body() -> None:
        for _ in range(50):
            task = asyncio.ensure_future(in_guest(guest.nursery, wait))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert seen in ([], ["ended"])  # cancelled before it began, or ended
            seen.clear()
        started = asyncio.Event()

        async def begun() -> None:
            started.set()
            await wait()

        task = asyncio.ensure_future(in_guest(guest.nursery, begun))
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # again, while it ends
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["ended"]

    guest.run(body)


def test_a_nursery_that_ends_ends_who_waits() -> None:
    guest = Guest()

    async def body() -> None:
        task = asyncio.ensure_future(in_guest(guest.nursery, trio.sleep_forever))
        await asyncio.sleep(0.01)
        guest.nursery.cancel_scope.cancel()
        with pytest.raises(GuestEnded):
            await task
        with pytest.raises(GuestEnded):
            await in_guest(guest.nursery, trio.sleep_forever)

    guest.run(body)


def test_a_fault_of_trios_main_is_told() -> None:
    async def main() -> None:
        async def fail() -> None:
            raise RuntimeError("broken")

        with pytest.raises(RuntimeError, match="broken"):
            await start_guest(fail)

    asyncio.run(main())
