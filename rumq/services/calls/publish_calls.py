"""Publish and PublishStream."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import ExitStack

from rumq.services.access.callers import GrpcCaller
from rumq.services.access.waiting_bytes import WaitingBytes
from rumq.services.calls.call import Call
from rumq.services.contract.faults import CallFault, shutting_down
from rumq.services.contract.requests import parsed
from rumq.services.generated import broker_service_pb2 as pb
from rumq.services.publishing.batch import PublishBatch
from rumq.services.publishing.frames import OutgoingPublish, outgoing
from rumq.services.publishing.publishers import Publisher, UserPublishers

STREAM_BYTES_MAX = 8 << 20  # of one stream that wait for their answers; then its requests are not read
STREAM_MESSAGES_MAX = 50_000
ANSWER_IDS_MAX = 10_000
TOPICS_MAX = 1_000  # of a call whose rules are remembered
CANCELLED = CallFault("BROKER_AWAY", "the call was ended")


class PublishCalls:
    """messages_max: of one request"""

    def __init__(self, publishers: UserPublishers, waiting: WaitingBytes, messages_max: int) -> None:
        self._publishers, self.waiting, self._messages_max = publishers, waiting, messages_max

    async def publish(self, call: Call) -> bytes:
        request = parsed(pb.PublishRequest, await call.request())
        call.caller.check_role("publish")
        if not request.HasField("message"):
            raise CallFault("ARGUMENT_INVALID", "message is missing")
        publisher = await self._publishers.publisher(call.caller.user)
        batch = Batched(call.caller).made([request.message], publisher)
        for fault in batch.refusals.values():
            raise fault
        done = asyncio.Event()
        with self.waiting.hold(batch.size, call.holders):
            publisher.put(call, batch)
            batch.when_done(done.set)
            try:
                await done.wait()
            finally:
                batch.fail(CANCELLED)  # what is not sent yet is not sent
        if batch.fault is not None:
            raise batch.fault
        for refused in batch.refusals.values():
            raise refused
        self._publishers.published += 1
        return pb.PublishResponse(id=batch.ids[0]).SerializeToString()

    async def publish_stream(self, call: Call) -> None:
        call.caller.check_role("publish")
        stream = PublishStream(self, call)
        try:
            async with asyncio.TaskGroup() as tasks:
                stop = tasks.create_task(stream.stop_with_server())
                answering = tasks.create_task(stream.answer())
                await stream.take()
                await answering
                stop.cancel()
        except BaseExceptionGroup as group:
            faults = [each for each in group.exceptions if isinstance(each, CallFault)]
            raise (faults or group.exceptions)[0] from None
        finally:
            stream.end()

    async def batch(self, call: Call, data: bytes, batched: Batched) -> tuple[PublishBatch, Publisher]:
        request = parsed(pb.PublishStreamRequest, data)
        if len(request.messages) > self._messages_max:
            raise CallFault(
                "REQUEST_TOO_LARGE",
                f"a request has {len(request.messages)} messages, and {self._messages_max} are taken "
                "(grpc.request_messages_max): send them in several",
                limit=self._messages_max,
            )
        publisher = await self._publishers.publisher(call.caller.user)
        return batched.made(request.messages, publisher), publisher

    def count(self, batch: PublishBatch) -> None:
        if batch.fault is None:
            self._publishers.published += len(batch.ids) - len(batch.refusals)


class Batched:
    """Messages of one call as batches: each is looked at, and refused or made a packet of."""

    def __init__(self, caller: GrpcCaller) -> None:
        self._caller = caller
        self._allowed: dict[tuple[str, bool], bool] = {}

    def made(self, messages: object, publisher: Publisher) -> PublishBatch:
        found: list[OutgoingPublish | None] = []
        refusals: dict[int, CallFault] = {}
        bytes_max, allowed = publisher.packet_bytes_max, self._allowed
        for message in messages:  # type: ignore[attr-defined]  # a repeated field has no type of its own
            try:
                made = outgoing(message, bytes_max)
                key = message.topic, message.retain
                may = allowed.get(key)
                if may is None:
                    may = self._learn(key)
                if not may:
                    raise not_authorized(self._caller, message.topic)
                found.append(made)
            except CallFault as fault:
                refusals[len(found)] = fault
                found.append(None)
        return PublishBatch(found, refusals)

    def _learn(self, key: tuple[str, bool]) -> bool:
        if len(self._allowed) >= TOPICS_MAX:
            self._allowed.clear()
        may = self._allowed[key] = self._caller.may_publish(key[0], retain=key[1])
        return may


class PublishStream:
    """One call of it: batches in the order of their requests, a bounded number of them without an answer."""

    def __init__(self, calls: PublishCalls, call: Call) -> None:
        self._calls, self._call = calls, call
        self._batches: deque[PublishBatch] = deque()
        self._changed = asyncio.Event()
        self._is_over = False
        self._bytes = self._messages = 0
        self._held = ExitStack()

    async def take(self) -> None:
        """Take requests until there are no more. raises: CallFault"""
        calls, call = self._calls, self._call
        batched = Batched(call.caller)
        async for data in call.requests:
            caller = await call.look_again()
            if caller is not batched._caller:
                batched = Batched(caller)
            batch, publisher = await calls.batch(call, data, batched)
            while self._batches and (
                self._bytes + batch.size > STREAM_BYTES_MAX or self._messages >= STREAM_MESSAGES_MAX
            ):
                await self._wait()
            await calls.waiting.room(batch.size, call.holders)
            self._batches.append(batch)
            self._bytes += batch.size
            self._messages += len(batch.ids)
            publisher.put(call, batch)
            batch.when_done(self._changed.set)
            self._changed.set()
        self._is_over = True
        self._changed.set()

    async def answer(self) -> None:
        """Answer batches as they are done, several at a time. raises: CallFault"""
        while True:
            answer = pb.PublishStreamResponse()
            fault = None
            while self._batches and self._batches[0].is_done and len(answer.ids) < ANSWER_IDS_MAX:
                batch = self._batches[0]
                fault = batch.fault
                if fault is not None:
                    break
                for number, refused in sorted(batch.refusals.items()):
                    answer.refusals.add(index=len(answer.ids) + number, reason=refused.reason, detail=refused.detail)
                answer.ids.extend(batch.ids)
                self._drop_first()
            if answer.ids:
                await self._call.write(answer.SerializeToString())
            if fault is not None:
                raise fault
            if not answer.ids:
                if not self._batches and self._call.stopping.is_set():
                    raise shutting_down()
                if self._is_over and not self._batches:
                    return
                await self._wait()

    async def stop_with_server(self) -> None:
        await self._call.stopping.wait()
        self._changed.set()

    async def _wait(self) -> None:
        """Until something has changed since the state was looked at: nothing is awaited between the two."""
        self._changed.clear()
        await self._changed.wait()

    def _drop_first(self) -> None:
        batch = self._batches.popleft()
        self._bytes -= batch.size
        self._messages -= len(batch.ids)
        self._calls.waiting.give_back(batch.size, self._call.holders)
        self._calls.count(batch)
        self._changed.set()

    def end(self) -> None:
        """What is not sent yet is not sent."""
        for batch in self._batches:
            batch.fail(CANCELLED)
            self._calls.waiting.give_back(batch.size, self._call.holders)
        self._batches.clear()


def not_authorized(caller: GrpcCaller, topic: str) -> CallFault:
    return CallFault("NOT_AUTHORIZED", f"the rules do not let {caller.name} publish to {topic[:200]!r}", topic=topic)
