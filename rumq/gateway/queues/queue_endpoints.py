"""The answers about queues: defined, listed, pushed to, looked at, repaired. docs/reference/gateway.md, "Queues"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rumq.admin.operations import NotFound
from rumq.gateway.access.tokens import Token
from rumq.gateway.contract import queue_messages as m
from rumq.gateway.contract.problems import WrongKind, fields_of, response_of
from rumq.gateway.handlers.context import QueueAccess
from rumq.gateway.handlers.record_endpoints import as_kind, wanted_kind
from rumq.gateway.http.media_types import JSON, MSGPACK, MSGPACK_TOO
from rumq.gateway.http.request_body import body_of
from rumq.gateway.http.requests import as_json, parameters_of
from rumq.gateway.http.requests import fields_of as body_fields_of
from rumq.gateway.queues.queue_rows import (
    channel_row,
    door_of,
    message_rows,
    pushes,
    queue_row,
    settings_from,
)
from rumq.queues import ChannelInfo, ChannelSettings, NoSuchQueue, Pushed, PushResult, QueueInfo, Queues, QueueSettings
from rumq.queues.rules.names import check_label, dead_label, folded
from rumq.settings.table.gateway import Gateway

Body = TypeVar("Body", bound=msgspec.Struct)
CREATED = 201


class QueueEndpoints:
    def __init__(self, access: QueueAccess, settings: Gateway, event: Callable[..., None]) -> None:
        self._access, self._settings, self._event = access, settings, event

    @property
    def _queues(self) -> Queues:
        """raises: NotFound"""
        return queues_of(self._access)

    # Queues

    async def queues(self, request: Request, token: Token) -> Response:
        asked, door = parameters_of(request, m.QueueSearch), door_of(request)
        channels = await self._queues.channels(token.user)
        part = folded(asked.label or "")
        known = {each.definition.label: each for each in await self._queues.queues(token.user)}
        rows = [queue_row(each, channels, dead_of(label, known), door) for label, each in known.items()]
        return as_json(m.QueueList(queues=[each for each in rows if part in each.label]))

    async def create_queue(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneQueue)
        given = await self._body(request, m.NewQueue)
        label = check_label(asked.label)
        is_there = await self._is_queue(token, label)
        info = await self._queues.create_queue(token.user, label, settings_from(given, QueueSettings))
        self._audit("create_queue", token, label=label, settings=msgspec.to_builtins(given))
        return as_json(queue_row(info, (), 0, door_of(request)), 200 if is_there else CREATED)

    async def queue(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneQueue)
        info = await self._queues.queue(token.user, asked.label)
        channels = await self._queues.channels(token.user, asked.label)
        dead = {}
        try:
            label = dead_label(info.definition.label)
            dead[label] = await self._queues.queue(token.user, label)
        except NoSuchQueue:
            pass  # none of its channels keeps dead letters
        return as_json(queue_row(info, channels, dead_of(info.definition.label, dead), door_of(request)))

    async def delete_queue(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneQueue)
        await self._queues.delete_queue(token.user, asked.label)
        label = folded(asked.label)
        self._audit("delete_queue", token, label=label)
        return as_json(m.RemovedName(removed=label))

    async def queue_topics(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneQueue)
        return as_json(m.QueueTopics(topics=sorted(await self._queues.topics(token.user, asked.label))))

    # Messages

    async def push(self, request: Request, token: Token) -> Response:
        kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if kind != JSON and kind not in MSGPACK_TOO:
            raise WrongKind(f"cannot take {kind[:100]!r}: send {JSON} or {MSGPACK}")
        asked = parameters_of(request, m.PushTo)
        body = await body_of(request, self._settings.body_bytes_max)
        messages = pushes(body, is_msgpack=kind != JSON)
        results = await self._queues.push(token.user, asked.label, messages, with_ids=asked.ids)
        return as_pushed(results, with_ids=asked.ids)

    async def peek(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.PeekMessages)
        return await self._peeked(request, token, asked, asked.label)

    async def dead_letters(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.PeekMessages)
        await self._queues.queue(token.user, asked.label)  # NoSuchQueue for one that is not there
        try:
            return await self._peeked(request, token, asked, dead_label(check_label(asked.label)))
        except NoSuchQueue:  # none of its channels has dead letters
            return as_kind(m.PeekedMessages(messages=[]), wanted_kind(request))

    async def _peeked(self, request: Request, token: Token, asked: m.PeekMessages, label: str) -> Response:
        kind = wanted_kind(request)
        found = await self._queues.peek(token.user, label, asked.topic, after_us=asked.after_us, messages_max=asked.max)
        return as_kind(m.PeekedMessages(messages=message_rows(found, is_binary=kind == MSGPACK)), kind)

    # Repair

    async def redrive(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.RedriveMessages)
        await self._body(request, m.NoFields)
        done = await self._queues.redrive(token.user, asked.label, asked.max)
        self._audit("redrive", token, label=asked.label, done=done)
        return as_json(m.CountedMessages(done=done))

    async def purge_queue(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneQueue)
        await self._body(request, m.NoFields)
        info = await self._queues.queue(token.user, asked.label)
        done = 0
        for channel_id in info.channels:
            done += await self._queues.purge(token.user, channel_id)
        self._audit("purge_queue", token, label=info.definition.label, done=done)
        return as_json(m.CountedMessages(done=done))

    async def purge_channel(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneChannel)
        await self._body(request, m.NoFields)
        done = await self._queues.purge(token.user, asked.id)
        self._audit("purge_channel", token, id=asked.id, done=done)
        return as_json(m.CountedMessages(done=done))

    # Channels

    async def create_channel(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneQueue)
        given = await self._body(request, m.NewChannelOfAll)
        return await self._created_channel(request, token, asked.label, given.topic, given)

    async def create_topic_channel(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.TopicChannel)
        given = await self._body(request, m.NewChannel)
        return await self._created_channel(request, token, asked.label, asked.topic, given)

    async def _created_channel(
        self, request: Request, token: Token, label: str, topic: str | None, given: m.NewChannel
    ) -> Response:
        is_there = given.id is not None and await self._maybe_channel(token, given.id) is not None
        info = await self._queues.create_channel(
            token.user, label, topic, settings_from(given, ChannelSettings), given.id
        )
        if not is_there:
            self._audit("create_channel", token, id=info.definition.channel_id, label=label, topic=topic)
        return as_json(channel_row(info, door_of(request)), 200 if is_there else CREATED)

    async def channels(self, request: Request, token: Token) -> Response:
        asked, door = parameters_of(request, m.ChannelSearch), door_of(request)
        found = await self._queues.channels(token.user, asked.queue)
        rows = sorted((channel_row(each, door) for each in found), key=lambda row: row.id)
        return as_json(m.ChannelList(channels=rows))

    async def channel(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneChannel)
        return as_json(channel_row(await self._queues.channel(token.user, asked.id), door_of(request)))

    async def delete_channel(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneChannel)
        await self._queues.delete_channel(token.user, asked.id)
        self._audit("delete_channel", token, id=folded(asked.id))
        return as_json(m.RemovedName(removed=folded(asked.id)))

    async def _is_queue(self, token: Token, label: str) -> bool:
        try:
            await self._queues.queue(token.user, label)
        except NoSuchQueue:
            return False
        return True

    async def _maybe_channel(self, token: Token, channel_id: str) -> ChannelInfo | None:
        try:
            return await self._queues.channel(token.user, channel_id)
        except NoSuchQueue:
            return None

    async def _body(self, request: Request, kind: type[Body]) -> Body:
        """raises: ValueError, TooLarge"""
        return await body_fields_of(request, kind, self._settings.body_bytes_max)

    def _audit(self, action: str, token: Token, **what: object) -> None:
        self._event("admin.action", action=action, token=token.name, what=what, why="", result=None)


def queues_of(access: QueueAccess) -> Queues:
    """raises: NotFound where the settings have none: to ask again is of no use"""
    if access.queues is None:
        raise NotFound("this broker has no queues: set queues.enabled = true, and start it again")
    return access.queues


def dead_of(label: str, known: Mapping[str, QueueInfo]) -> int:
    """Dead letters of a queue that are not sent back. known: queues by label"""
    dead = known.get(dead_label(label))
    return 0 if dead is None or dead.definition.label == label else dead.figures.depth_records


def as_pushed(results: list[PushResult], *, with_ids: bool) -> Response:
    """The ids, or a problem that says which messages were refused and why: 429 if the queue is full for one of them."""
    refused = [
        m.RefusedPush(number=number, kind=each.kind, why=each.why)
        for number, each in enumerate(results)
        if not isinstance(each, Pushed)
    ]
    ids = [str(each.id) if isinstance(each, Pushed) and each.id is not None else None for each in results]
    accepted = len(results) - len(refused)
    if not refused:
        return as_json(m.PushedMessages(accepted=accepted, ids=ids if with_ids else []))
    is_full = any(each.kind == "full" for each in refused)
    detail = f"{len(refused)} of {len(results)} were refused; number {refused[0].number}: {refused[0].why}"
    return response_of(
        m.RefusedPushes(
            **fields_of("queue-full" if is_full else "refused-pushes", detail), accepted=accepted, refused=refused,
            ids=ids if with_ids else [],
        )
    )  # fmt: skip
