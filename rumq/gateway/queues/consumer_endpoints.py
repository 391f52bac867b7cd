"""The answers to those who consume: messages by long poll or as a stream, acknowledgements, the end of a consumer."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from rumq.auth.quota_holder import holder_of
from rumq.gateway.access.admission import RequestAdmission
from rumq.gateway.access.tokens import Token
from rumq.gateway.consumers.channel_consumers import ConsumerHolder, HeldConsumer
from rumq.gateway.contract import queue_messages as m
from rumq.gateway.contract.problems import problem_of
from rumq.gateway.handlers.context import QueueAccess
from rumq.gateway.handlers.record_endpoints import as_kind, wanted_kind
from rumq.gateway.http.media_types import EVENTS, MSGPACK
from rumq.gateway.http.requests import address_of, as_json, fields_of, parameters_of, while_heard
from rumq.gateway.queues.message_stream import MessageStream
from rumq.gateway.queues.queue_endpoints import queues_of
from rumq.gateway.queues.queue_rows import message_rows
from rumq.gateway.records.log_watch import LogWatch
from rumq.queues import Delivered, MessageId, NoSuchQueue, QueueError, parse_message_id
from rumq.queues.rules.errors import shown
from rumq.queues.rules.names import folded
from rumq.settings.table.gateway import Gateway


class ConsumerEndpoints:
    def __init__(self, access: QueueAccess, followed: LogWatch, admission: RequestAdmission, settings: Gateway) -> None:
        self._access, self._followed, self._admission, self._settings = access, followed, admission, settings

    async def take(self, request: Request, token: Token) -> Response:
        kind = wanted_kind(request)
        asked = parameters_of(request, m.TakeMessages)
        queues_of(self._access)
        holder = holder_for(request, token)
        place = partial(self._followed.place, holder.network, token.name)
        held = self._access.consumers.consumer(holder, asked.id, asked.consumer, asked.credit)
        if asked.queue is not None:
            await self._check_queue(held, asked.queue)
        if kind == EVENTS:
            with held.asked():
                await held.wait_consumer()  # faults are still answers
            check = partial(self._admission.check, token)
            return MessageStream(self._access.consumers, held, place, check, problem_of)
        wait = min(asked.wait, 0.8 * self._settings.request_seconds_max)
        with held.asked():
            if not wait:
                found = await self._taken(held, asked.max, 0.0)
            else:
                with place():
                    found = await while_heard(request, partial(self._taken, held, asked.max, wait))
        rows = message_rows(found, is_binary=kind == MSGPACK)
        return as_kind(m.TakenMessages(consumer=held.name, messages=rows), kind)

    async def _check_queue(self, held: HeldConsumer, label: str) -> None:
        """Channel ids are unique over all queues: an id alone may be another program's. raises: NoSuchQueue"""
        with held.asked():
            await held.wait_consumer()
        if held.label != folded(label):
            self._access.consumers.end(held)
            raise NoSuchQueue(
                f"channel {shown(held.channel_id)} is of another queue than {shown(label)}: ids of channels are unique "
                "over all queues, so name its own, or create one of another id"
            )

    async def _taken(self, held: HeldConsumer, messages_max: int, wait: float) -> list[Delivered]:
        """raises: QueueError, after which the consumer has ended"""
        try:
            return await held.take(messages_max, wait)
        except QueueError:
            self._access.consumers.end(held)
            raise

    async def acknowledge(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneChannel)
        given = await fields_of(request, m.Acknowledgements, self._settings.body_bytes_max)
        held = self._known(request, token, asked.id, given.consumer)
        done, reject, extend = (ids_of(each) for each in (given.acknowledge, given.reject, given.extend))
        others: list[MessageId] = []
        with held.asked():
            consumer = await held.wait_consumer()
            if done:
                others += await consumer.acknowledge(done)
            if reject:
                others += await consumer.reject(reject, given.delay_seconds)
            if extend:
                others += await held.extend(extend, given.seconds)
        count = len(done) + len(reject) + len(extend) - len(others)
        return as_json(m.AnsweredMessages(done=count, not_held=[str(each) for each in others]))

    async def end_consumer(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneConsumer)
        held = self._known(request, token, asked.id, asked.consumer)
        self._access.consumers.end(held)
        return as_json(m.RemovedName(removed=held.name))

    def _known(self, request: Request, token: Token, channel_id: str, name: str) -> HeldConsumer:
        """raises: NoSuchQueue"""
        queues_of(self._access)
        return self._access.consumers.known(holder_for(request, token), channel_id, name)


def holder_for(request: Request, token: Token) -> ConsumerHolder:
    return ConsumerHolder(token.name, token, token.user, holder_of(address_of(request)))


def ids_of(written: list[str]) -> list[MessageId]:
    """Each once. raises: BadQueueRequest"""
    return list(dict.fromkeys(parse_message_id(each) for each in written))
