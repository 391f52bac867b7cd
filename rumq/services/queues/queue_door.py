"""The queues of the gRPC server: `rumq.queues` in a trio guest, and the way of a call to them.

They begin again after a fault of ours: calls that run end with QUEUES_AWAY, what consumers held goes to others, and the
other service goes on. Refuses to know protobuf."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from rumq.queues import QueueError, QueuePorts, Queues
from rumq.services.calls.call import Call
from rumq.services.contract.faults import CallFault
from rumq.services.queues.guest_loop import GuestEnded, in_guest, start_guest
from rumq.services.queues.queue_faults import fault_of

NAME = "rumq.v1.Queues"
AGAIN_SECONDS = 1.0
READY_SECONDS = 5.0  # a call waits so long for queues that begin
DISABLED = "this broker has no queues: set queues.enabled = true, and start it again"
Found = TypeVar("Found")


class QueueDoor:
    """ports: None: this broker has no queues; event: reports events; make: a test's own queues"""

    def __init__(
        self, ports: QueuePorts | None, event: Callable[..., None], make: Callable[[QueuePorts], Queues] = Queues
    ) -> None:
        self._ports, self._event, self._make = ports, event, make
        self._scope = trio.CancelScope()
        self._ready = asyncio.Event()
        self._serving: tuple[Queues, trio.Nursery] | None = None

    async def run(self) -> None:
        """Until cancelled. raises: a fault of trio's, after which nothing here can go on"""
        if self._ports is None:
            await asyncio.Event().wait()
        ended = start_guest(self._run)
        try:
            await asyncio.shield(ended)
        finally:
            self._scope.cancel()
            await asyncio.wait([ended])

    async def _run(self) -> None:
        with self._scope:
            while True:
                try:
                    await self._serve()
                except Exception as fault:  # ours
                    self._event("grpc.failed", method=NAME, exc_info=fault)
                finally:
                    self._ready.clear()
                    self._serving = None
                await trio.sleep(AGAIN_SECONDS)

    async def _serve(self) -> None:
        assert self._ports is not None
        queues = self._make(self._ports)
        async with trio.open_nursery() as nursery:  # calls run in it, and so end with the queues
            await nursery.start(queues.run)
            self._serving = queues, nursery
            self._ready.set()
            await trio.sleep_forever()

    @property
    def state(self) -> str:
        """Why queues do not serve now, as far as is known without asking; empty: they do."""
        if self._ports is None:
            return DISABLED
        if self._serving is None:
            return "the queues of this node begin, or wait for its broker"
        return "" if self._serving[0].is_current else "the broker of this node does not answer"

    def count(self, call: Call) -> int:
        """Queues that the caller is told of. Never waits."""
        return 0 if self._serving is None else view_of(self._serving[0], call).count(user_of(call))

    async def ask(self, call: Call, question: Callable[[Queues], Awaitable[Found]]) -> Found:
        """Ask the queues, as they are for this caller. raises: CallFault"""
        queues, nursery = await self._wait_serving()
        try:
            return await in_guest(nursery, question, view_of(queues, call))
        except QueueError as fault:
            raise fault_of(fault) from None
        except GuestEnded:
            raise CallFault("QUEUES_AWAY", "the queues of this node have ended, and begin again: try again") from None

    def check(self, call: Call, check: Callable[[Queues], None]) -> None:
        """Ask what needs no wait. raises: CallFault"""
        if self._serving is not None:
            try:
                check(view_of(self._serving[0], call))
            except QueueError as fault:
                raise fault_of(fault) from None

    def do(self, act: Callable[[], None]) -> None:
        """Do something to queues now that waits for nothing; to queues that have ended, nothing is to be done."""
        if self._serving is not None:
            act()

    async def _wait_serving(self) -> tuple[Queues, trio.Nursery]:
        """raises: CallFault"""
        if self._ports is None:
            raise CallFault("QUEUES_DISABLED", DISABLED, setting="queues.enabled")
        try:
            async with asyncio.timeout(READY_SECONDS):
                while self._serving is None:
                    await self._ready.wait()
        except TimeoutError:
            raise CallFault("QUEUES_AWAY", f"{self.state}: try again") from None
        return self._serving


def view_of(queues: Queues, call: Call) -> Queues:
    """With the rights of the caller as they are at each moment: groups and certificates of its login count."""
    return queues.for_caller(lambda user: call.caller.permit)


def user_of(call: Call) -> str:
    return call.caller.user or ""
