"""PushToQueue and PushStream."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from rumq.queues import Push, Pushed, PushResult
from rumq.services.access.waiting_bytes import WaitingBytes
from rumq.services.calls.call import Call
from rumq.services.contract.faults import CallFault, shutting_down
from rumq.services.contract.requests import parsed
from rumq.services.generated import queues_pb2 as pb
from rumq.services.queues.queue_door import QueueDoor, user_of
from rumq.services.queues.queue_faults import fault_of
from rumq.services.queues.queue_messages import pushed, pushes_of

STREAM_BYTES_MAX = 8 << 20  # of one stream that wait for their answers; then its requests are not read
STREAM_MESSAGES_MAX = 50_000
ANSWER_IDS_MAX = 10_000
MESSAGES_MAX = 10_000  # of a request, whatever the settings say: as many as queues take at a time


class PushCalls:
    """waiting: what waits for the broker, of all calls; messages_max: of one request"""

    def __init__(self, door: QueueDoor, waiting: WaitingBytes, messages_max: int) -> None:
        self._door, self.waiting, self._messages_max = door, waiting, min(messages_max, MESSAGES_MAX)

    async def push(self, call: Call) -> bytes:
        data = await call.request()
        request = parsed(pb.PushToQueueRequest, data)
        call.caller.check_token_role("publish")
        if not request.messages:
            raise CallFault("ARGUMENT_INVALID", "messages is empty: give one message, or more")
        messages, with_ids = self.checked(request.messages), not request.without_ids
        with self.waiting.hold(len(data), call.holders):
            results = await self.put(call, request.queue, messages, with_ids=with_ids)
        answer = pb.PushToQueueResponse()
        if not any(isinstance(each, Pushed) for each in results):
            assert not isinstance(results[0], Pushed)
            raise fault_of(results[0])
        pushed(results, answer, with_ids=with_ids)
        return answer.SerializeToString()

    async def push_stream(self, call: Call) -> None:
        call.caller.check_token_role("publish")
        await PushStream(self, call).run()

    def checked(self, messages: Sequence[pb.PushMessage]) -> list[Push]:
        """raises: CallFault"""
        if len(messages) > self._messages_max:
            raise CallFault(
                "REQUEST_TOO_LARGE",
                f"a request has {len(messages)} messages, and {self._messages_max} are taken "
                "(grpc.request_messages_max): send them in several",
                limit=self._messages_max,
            )
        return pushes_of(messages)

    async def put(
        self, call: Call, label: str, messages: Sequence[Push], *, with_ids: bool,
        on_put: Callable[[], None] = lambda: None,
    ) -> list[PushResult]:  # fmt: skip
        """raises: CallFault. on_put: called once they have their place before later ones"""
        return await self._door.ask(
            call, lambda queues: queues.push(user_of(call), label, messages, with_ids=with_ids, on_put=on_put)
        )


class PushPart:
    """A request of a stream that is under way. put: it has its place before later ones; task: its work"""

    def __init__(self, size: int, count: int, *, with_ids: bool) -> None:
        self.size, self.count, self.with_ids = size, count, with_ids
        self.put = asyncio.Event()
        self.results: list[PushResult] | None = None
        self.fault: CallFault | None = None

    @property
    def is_done(self) -> bool:
        return self.results is not None or self.fault is not None


class PushStream:
    """One call of it: requests in their order, a bounded number of them without an answer."""

    def __init__(self, calls: PushCalls, call: Call) -> None:
        self._calls, self._call = calls, call
        self._parts: deque[PushPart] = deque()
        self._bytes = self._messages = 0
        self._changed = asyncio.Event()
        self._is_over = False

    async def run(self) -> None:
        """raises: CallFault"""
        try:
            async with asyncio.TaskGroup() as tasks:
                stop = tasks.create_task(self._stop_with_server())
                answering = tasks.create_task(self._answer())
                await self._take(tasks)
                await answering
                stop.cancel()
        except BaseExceptionGroup as group:
            faults = [each for each in group.exceptions if isinstance(each, CallFault)]
            raise (faults or group.exceptions)[0] from None
        finally:
            for part in self._parts:
                self._calls.waiting.give_back(part.size, self._call.holders)

    async def _take(self, tasks: asyncio.TaskGroup) -> None:
        """Take requests until there are no more."""
        calls, call, label = self._calls, self._call, ""
        async for data in call.requests:
            await call.look_again()
            request = parsed(pb.PushStreamRequest, data)
            label = request.queue or label
            if not label:
                raise CallFault("ARGUMENT_INVALID", "queue is missing: the first request names it")
            messages = calls.checked(request.messages)
            part = PushPart(len(data), len(messages), with_ids=not request.without_ids)
            while self._parts and (self._bytes + part.size > STREAM_BYTES_MAX or self._messages >= STREAM_MESSAGES_MAX):
                await self._wait()
            await calls.waiting.room(part.size, call.holders)
            self._parts.append(part)
            self._bytes += part.size
            self._messages += part.count
            tasks.create_task(self._push(part, label, messages))
            await part.put.wait()
        self._is_over = True
        self._changed.set()

    async def _push(self, part: PushPart, label: str, messages: list[Push]) -> None:
        try:
            part.results = await self._calls.put(
                self._call, label, messages, with_ids=part.with_ids, on_put=part.put.set
            )
        except CallFault as fault:
            part.fault = fault
        finally:
            part.put.set()
            self._changed.set()

    async def _answer(self) -> None:
        """Answer requests as they are done, several at a time. raises: CallFault"""
        while True:
            answer = pb.PushStreamResponse()
            fault = None
            while self._parts and self._parts[0].is_done and len(answer.ids) < ANSWER_IDS_MAX:
                part = self._parts[0]
                fault = part.fault
                if part.results is None:
                    break
                pushed(part.results, answer, with_ids=part.with_ids)
                self._drop_first()
            if answer.ids:
                await self._call.write(answer.SerializeToString())
            if fault is not None:
                raise fault
            if not answer.ids:
                if not self._parts and self._call.stopping.is_set():
                    raise shutting_down()
                if self._is_over and not self._parts:
                    return
                await self._wait()

    def _drop_first(self) -> None:
        part = self._parts.popleft()
        self._bytes -= part.size
        self._messages -= part.count
        self._calls.waiting.give_back(part.size, self._call.holders)
        self._changed.set()

    async def _wait(self) -> None:
        """Until something has changed since the state was looked at: nothing is awaited between the two."""
        self._changed.clear()
        await self._changed.wait()

    async def _stop_with_server(self) -> None:
        await self._call.stopping.wait()
        self._changed.set()
