"""One call: who calls, whether it may go on, and what it holds. The frame of all calls is `rumq.services.server`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, Protocol

from rumq.services.access.callers import CallerLogin, GrpcCaller
from rumq.services.access.shares import Holder
from rumq.services.contract.faults import shutting_down


class AnswerWriter(Protocol):
    """Sends an answer of a stream, and waits while its reader has no room."""

    def __call__(self, data: bytes) -> Awaitable[None]: ...


class Call:
    """holders: for whom it is counted; requests: serialized; write: one more answer of a stream, serialized

    begin: sends the initial metadata; stopping: the server is"""

    def __init__(
        self, login: CallerLogin, holders: tuple[Holder, ...], requests: AsyncIterator[bytes], write: AnswerWriter,
        begin: Callable[[], Awaitable[None]], stopping: asyncio.Event,
    ) -> None:  # fmt: skip
        self._login = login
        self.holders, self.requests, self.write, self.begin, self.stopping = holders, requests, write, begin, stopping

    @property
    def caller(self) -> GrpcCaller:
        return self._login.caller

    async def look_again(self) -> GrpcCaller:
        """The caller as it is now. raises: CallFault when its login is good no more, or the server stops"""
        if self.stopping.is_set():
            raise shutting_down()
        return await self._login.look_again()

    async def request(self) -> bytes:
        """The one request of a call that has one."""
        return await anext(self.requests)


Answer = Callable[[Call], Awaitable[bytes | None]]


class CallMethod(NamedTuple):
    """A call of a service. answer: takes the call, gives the answer; or None, and has written its answers

    takes_stream, gives_stream: as in the proto file"""

    name: str
    answer: Answer
    takes_stream: bool = False
    gives_stream: bool = False


def always() -> bool:
    return True


class Service(NamedTuple):
    """name: such as rumq.v1.BrokerService; serves: whether it does, where the broker of this node answers"""

    name: str
    methods: tuple[CallMethod, ...]
    serves: Callable[[], bool] = always
