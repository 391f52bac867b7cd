"""The consumer of one call: it begins and ends with the call, and takes by credit and by bytes."""

from __future__ import annotations

import asyncio
from types import TracebackType

from rumq.queues import Consumer, Delivered, MessageId, QueueError, Queues
from rumq.services.calls.call import Call
from rumq.services.contract.faults import CallFault
from rumq.services.generated import queues_pb2 as pb
from rumq.services.queues.queue_door import QueueDoor, user_of
from rumq.services.queues.queue_faults import fault_of
from rumq.services.queues.queue_messages import ids_of

CREDIT_USUAL = 100
TAKE_BYTES_MAX = 256 << 10  # of one answer; one message always fits
WAIT_SECONDS = 5.0  # then the login is looked at, and the wait goes on
ANSWERS_MAX = 10_000  # ids of one request
EXTEND_SECONDS = 30.0


class ChannelSession:
    """In a context: what the caller has not answered at its end goes to others.

    raises: CallFault where it begins"""

    def __init__(self, door: QueueDoor, call: Call, channel_id: str, credit: int) -> None:
        self._door, self._call = door, call
        self._channel_id, self._credit = channel_id, credit or CREDIT_USUAL
        self._caller = call.caller
        self._consumer: Consumer | None = None

    async def __aenter__(self) -> ChannelSession:
        try:
            await self._door.ask(self._call, self._open)
        except BaseException:
            self._close()  # cancelled in the moment in which it was there
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    async def _open(self, queues: Queues) -> None:
        self._consumer = await queues.consumer(user_of(self._call), self._channel_id, self._credit)

    def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            self._door.do(consumer.close)

    def give_back(self) -> None:
        """What it holds goes to others, and no try is counted."""
        self._door.do(self._held.give_back)

    @property
    def _held(self) -> Consumer:
        assert self._consumer is not None, "it is used in its context"
        return self._consumer

    async def take(self) -> list[Delivered]:
        """The next messages; none if there were none for a while. raises: CallFault"""
        consumer = self._held
        found = await self._door.ask(
            self._call, lambda _: consumer.next_batch(self._credit, WAIT_SECONDS, TAKE_BYTES_MAX)
        )
        caller = await self._call.look_again()
        if caller is not self._caller:  # rules or tokens have changed while it waited
            self._caller = caller
            self._door.check(self._call, lambda queues: queues.check_consume(user_of(self._call), consumer.channel))
        return found

    async def acknowledge(self, messages: list[Delivered]) -> None:
        """raises: CallFault"""
        ids, consumer = [each.id for each in messages], self._held
        await self._door.ask(self._call, lambda _: consumer.acknowledge(ids))

    async def answer(self, answers: pb.Answers, call: Call) -> pb.Answered:
        """Do as the answers say. call: whose they are. raises: CallFault"""
        count = len(answers.acknowledge) + len(answers.reject) + len(answers.extend)
        if not count:
            return pb.Answered()
        if count > ANSWERS_MAX:
            raise CallFault(
                "REQUEST_TOO_LARGE", f"{count} ids, and {ANSWERS_MAX} are taken in a request", limit=ANSWERS_MAX
            )
        try:
            done, reject, extend = (ids_of(each) for each in (answers.acknowledge, answers.reject, answers.extend))
        except QueueError as fault:
            raise fault_of(fault) from None
        delay = answers.delay_seconds if answers.HasField("delay_seconds") else None
        seconds = answers.extend_seconds or EXTEND_SECONDS
        consumer = self._held

        async def act(_: Queues) -> list[MessageId]:
            others: list[MessageId] = []
            if reject:
                others += await consumer.reject(reject, delay)
            if extend:
                others += await consumer.extend(extend, seconds)
            if done:
                others += await consumer.acknowledge(done)
            return others

        others = await self._door.ask(call, act)
        return pb.Answered(
            requests=1,
            done=len(done) + len(reject) + len(extend) - len(others),
            not_held=[str(each) for each in others],
        )


async def stop_with_server(call: Call) -> None:
    """Until the server stops. raises: CallFault then"""
    await call.stopping.wait()
    await call.look_again()
    await asyncio.Event().wait()
