"""trio as a guest of the running asyncio loop: one thread, objects of both, no lock. docs/decisions, 65.

A call crosses with its end: who is cancelled in asyncio is cancelled in trio, and waits until that has ended there;
what ends in trio, with its nursery or by itself, ends for who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, TypeVarTuple

import trio

Found = TypeVar("Found")
Given = TypeVarTuple("Given")


class GuestEnded(Exception):
    """The nursery that a call ran in has ended before it."""


def start_guest(main: Callable[[], Awaitable[None]]) -> asyncio.Future[None]:
    """Run trio from now on. returns: done once it has ended, with its fault; only then may the loop end"""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def done(outcome: Any) -> None:
        try:
            outcome.unwrap()
        except BaseException as fault:
            ended.set_exception(fault)
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
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Found] = loop.create_future()
    scope, is_over = trio.CancelScope(), False
    gone: asyncio.Future[None] | None = None  # once who waits was cancelled

    async def run() -> None:
        nonlocal is_over
        try:
            with scope:
                found = await function(*given)
                if not outcome.done():
                    outcome.set_result(found)
        except Exception as fault:
            if not outcome.done():
                outcome.set_exception(fault)
        finally:
            is_over = True
            if not outcome.done():
                outcome.set_exception(GuestEnded())
            if gone is not None and not gone.done():
                gone.set_result(None)

    try:
        nursery.start_soon(run)
    except RuntimeError:  # it is closed
        raise GuestEnded from None
    try:
        return await outcome
    except asyncio.CancelledError:
        scope.cancel()
        while not is_over:
            gone = loop.create_future()
            try:
                await gone
            except asyncio.CancelledError:
                pass  # it is ending already
        raise
