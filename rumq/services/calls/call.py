"""One call: who calls, whether it may go on, and what it holds. The frame of all calls is `rumq.services.server`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, Protocol

from rumq.services.access.callers import Caller
from rumq.services.access.shares import Holder
from rumq.services.contract.faults import CallFault, shutting_down


class Written(Protocol):
    """Sends an answer of a stream, and waits while its reader has no room."""

    def __call__(self, data: bytes) -> Awaitable[None]: ...


class Call:
    """holders: for whom it is counted; requests: serialized; write: one more answer of a stream, serialized

    begin: sends the initial metadata"""

    def __init__(
        self, caller: Caller, holders: tuple[Holder, ...], requests: AsyncIterator[bytes], write: Written,
        begin: Callable[[], Awaitable[None]], recheck: Callable[[], Awaitable[Caller]], has_ended: Callable[[], str],
        generation: Callable[[], int], stopping: asyncio.Event,
    ) -> None:  # fmt: skip
        """stopping: the server is"""
        self.caller, self.holders, self.requests, self.write, self.begin = caller, holders, requests, write, begin
        self._recheck, self._has_ended, self._generation = recheck, has_ended, generation
        self._checked = generation()
        self.stopping = stopping

    @property
    def is_current(self) -> bool:
        """False: rules or users have changed since the login was looked at."""
        return self._checked == self._generation()

    async def look_again(self) -> Caller:
        """The caller as it is now. raises: CallFault when its login is good no more, or the server stops"""
        if self.stopping.is_set():
            raise shutting_down()
        if why := self._has_ended():
            raise CallFault("LOGIN_ENDED", why)
        if not self.is_current:
            generation = self._generation()
            self.caller = await self._recheck()
            self._checked = generation
        return self.caller

    async def request(self) -> bytes:
        """The one request of a call that has one."""
        return await anext(self.requests)


Answer = Callable[[Call], Awaitable[bytes | None]]


class Method(NamedTuple):
    """A call of a service. answer: takes the call, gives the answer; or None, and has written its answers

    takes_stream, gives_stream: as in the proto file"""

    name: str
    answer: Answer
    takes_stream: bool = False
    gives_stream: bool = False


class Service(NamedTuple):
    """name: such as rumq.v1.BrokerService"""

    name: str
    methods: tuple[Method, ...]
