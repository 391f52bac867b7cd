"""trio as a guest of the running asyncio loop: one thread, objects of both, no lock. docs/decisions, 65.

A call crosses with its end: who is cancelled in asyncio is cancelled in trio, and waits until that has ended there;
what ends in trio, with its nursery or by itself, ends for who waits. Knows no queues and no gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import trio
from outcome import Error, Outcome

Found = TypeVar("Found")
Given = TypeVarTuple("Given")


class GuestEnded(Exception):
    """The nursery that a call ran in has ended before it."""


def start_guest(main: Callable[[], Awaitable[None]]) -> asyncio.Future[None]:
    """Run trio from now on. returns: done once it has ended, with its fault; only then may the loop end"""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def done(outcome: Outcome[None]) -> None:
        if isinstance(outcome, Error):
            ended.set_exception(outcome.error)
        else:
            ended.set_result(None)

    trio.lowlevel.start_guest_run(
        main,
        run_sync_soon_threadsafe=loop.call_soon_threadsafe,
        run_sync_soon_not_threadsafe=loop.call_soon,
        done_callback=done,
        host_uses_signal_set_wakeup_fd=True,
    )
    return ended


async def in_guest(nursery: trio.Nursery, function: Callable[[*Given], Awaitable[Found]], *given: *Given) -> Found:
    """Run it as a trio task of the nursery. raises: what it raises, GuestEnded. cost: some 20 µs"""
    outcome: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
    scope = trio.CancelScope()

    async def run() -> None:
        try:
            with scope:
                outcome.set_result(await function(*given))
        except Exception as fault:
            outcome.set_exception(fault)
        finally:
            if not outcome.done():
                outcome.set_exception(GuestEnded())

    try:
        nursery.start_soon(run)
    except RuntimeError:  # it is closed
        raise GuestEnded from None
    try:
        await asyncio.wait([outcome])
    except asyncio.CancelledError:
        scope.cancel()
        while not outcome.done():
            try:
                await asyncio.wait([outcome])
            except asyncio.CancelledError:
                pass  # it is ending already
        outcome.exception()  # nobody asks for it any more
        raise
    return outcome.result()
