"""SubscribeToChannel, Acknowledge and Consume."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from typing import NamedTuple

from rumq.queues import Delivered
from rumq.services.calls.call import Call
from rumq.services.contract.faults import CallFault
from rumq.services.contract.requests import parsed
from rumq.services.generated import queues_pb2 as pb
from rumq.services.queues.channel_session import ChannelSession, stop_with_server
from rumq.services.queues.queue_door import QueueDoor
from rumq.services.queues.queue_messages import message_of

NOT_HELD_MAX = 10_000  # ids that are to be told; then requests are not read
NAME_BYTES = 12
VANISHED_SECONDS = 0.1


class NamedSession(NamedTuple):
    """owner: who may answer its messages"""

    session: ChannelSession
    owner: str


class ConsumeCalls:
    def __init__(self, door: QueueDoor) -> None:
        self._door = door
        self._named: dict[str, NamedSession] = {}

    async def subscribe(self, call: Call) -> None:
        request = parsed(pb.SubscribeToChannelRequest, await call.request())
        call.caller.check_token_role("consume")
        async with ChannelSession(self._door, call, request.channel, request.credit) as session:
            name = secrets.token_urlsafe(NAME_BYTES)
            self._named[name] = NamedSession(session, call.caller.name)
            try:
                await call.begin()
                await call.write(pb.SubscribeToChannelResponse(consumer=name).SerializeToString())
                await until_first(stop_with_server(call), send(call, session, acknowledges=request.auto_acknowledge))
            finally:
                del self._named[name]

    async def acknowledge(self, call: Call) -> bytes:
        request = parsed(pb.AcknowledgeRequest, await call.request())
        call.caller.check_token_role("consume")
        named = self._named.get(request.consumer)
        if named is None or named.owner != call.caller.name:
            await self._door.ask(call, nothing)  # queues that are off say so
            raise CallFault(
                "QUEUE_UNKNOWN",
                "there is no consumer of this name here: it has ended, and what it held is given to others; a "
                "SubscribeToChannel begins one, at the node that its Acknowledge goes to",
            )
        answered = await named.session.answer(request.answers, call)
        return pb.AcknowledgeResponse(answered=answered).SerializeToString()

    async def consume(self, call: Call) -> None:
        call.caller.check_token_role("consume")
        try:
            request = parsed(pb.ConsumeRequest, await call.request())
        except StopAsyncIteration:
            raise CallFault("ARGUMENT_INVALID", "no request came: the first one names the channel") from None
        async with ChannelSession(self._door, call, request.channel, request.credit) as session:
            await call.begin()
            stream = ConsumeStream(call, session)
            await stream.run(request)


async def nothing(queues: object) -> None:
    """Of queues that serve."""


async def send(call: Call, session: ChannelSession, *, acknowledges: bool) -> None:
    """Messages as they come, one way."""
    while True:
        if found := await session.take():
            answer = pb.SubscribeToChannelResponse(messages=[message_of(each) for each in found])
            await call.write(answer.SerializeToString())
            if acknowledges:
                await session.acknowledge(found)


class ConsumeStream:
    """One call of Consume: requests are read, messages taken, responses written, each by its own task.

    Waiting for its reader there are one response, the messages of the next, and NOT_HELD_MAX ids."""

    def __init__(self, call: Call, session: ChannelSession) -> None:
        self._call, self._session = call, session
        self._messages: list[Delivered] = []
        self._answered = pb.Answered()
        self._changed = asyncio.Event()  # something to write
        self._written = asyncio.Event()
        self._is_over = False
        self._taking: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, first: pb.ConsumeRequest) -> None:
        """Until the caller closes its side. raises: CallFault"""
        self._taking = asyncio.ensure_future(self._take_messages())
        try:
            await until_first(stop_with_server(self._call), self._taken(), self._read_requests(first), self._write())
        finally:
            self._taking.cancel()
            await asyncio.wait([self._taking])

    async def _taken(self) -> None:
        """Until messages cannot be taken. raises: CallFault then"""
        await asyncio.wait([self._taking])
        if not self._taking.cancelled():
            self._taking.result()
        await asyncio.Event().wait()

    async def _read_requests(self, first: pb.ConsumeRequest) -> None:
        await self._answer(first.answers)
        async for data in self._call.requests:
            request = parsed(pb.ConsumeRequest, data)
            if request.channel or request.credit:
                raise CallFault("ARGUMENT_INVALID", "channel and credit are of the first request alone")
            await self._answer(request.answers)
        # To grpc a caller that vanishes closes its side as well, and is cancelled at once.
        await asyncio.sleep(VANISHED_SECONDS)
        # It has ended in good order: what it has not answered it did not work on.
        self._is_over = True
        self._taking.cancel()
        await asyncio.wait([self._taking])
        self._messages = []
        self._session.give_back()
        self._changed.set()
        await asyncio.Event().wait()

    async def _answer(self, answers: pb.Answers) -> None:
        while len(self._answered.not_held) > NOT_HELD_MAX:
            self._written.clear()
            await self._written.wait()
        told = await self._session.answer(answers, self._call)
        if told.requests:
            self._answered.requests += told.requests
            self._answered.done += told.done
            self._answered.not_held.extend(told.not_held)
            self._changed.set()

    async def _take_messages(self) -> None:
        while True:
            found = await self._session.take()
            if found:
                self._messages = found
                self._changed.set()
            while self._messages:
                self._written.clear()
                await self._written.wait()

    async def _write(self) -> None:
        """Until the caller has closed its side, and was told what became of its answers."""
        while True:
            self._changed.clear()
            messages, self._messages = self._messages, []
            answered, self._answered = self._answered, pb.Answered()
            self._written.set()
            if messages or answered.requests:
                response = pb.ConsumeResponse(messages=[message_of(each) for each in messages])
                if answered.requests:
                    response.answered.CopyFrom(answered)
                await self._call.write(response.SerializeToString())
            elif self._is_over:
                return
            else:
                await self._changed.wait()


async def until_first(*parts: Coroutine[None, None, None]) -> None:
    """Run all until one has ended, and end the others. raises: what it raises, a CallFault first"""
    tasks = [asyncio.ensure_future(each) for each in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    faults = [fault for each in done if not each.cancelled() and (fault := each.exception()) is not None]
    for fault in sorted(faults, key=lambda fault: not isinstance(fault, CallFault)):
        raise fault
