"""Queues, channels and messages as REST tells them, and messages to push as it takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec
from starlette.requests import Request

from rumq.gateway.contract import queue_messages as m
from rumq.gateway.contract.messages import of_json
from rumq.gateway.http.media_types import JSON as JSON_TYPE
from rumq.gateway.records.record_rows import shown
from rumq.queues import ChannelInfo, ChannelSettings, Delivered, Push, QueueInfo, QueueSettings
from rumq.queues.rules.names import NO_TOPIC

JSON = msgspec.json.Decoder(m.PushMessage | list[m.PushMessage])
MSGPACK = msgspec.msgpack.Decoder(m.BinaryPushMessage | list[m.BinaryPushMessage])
EXPECTED = (
    'The body is one message, such as {"payload": "hello"}, or a list of up to '
    f"{m.MESSAGES_MAX:,} of them, [{{...}}, {{...}}], without an object around it; fields of a message: "
    + ", ".join(m.PushMessage.__struct_fields__)
)
PORTS = {"https": 443}
Settings = TypeVar("Settings", QueueSettings, ChannelSettings)


class Door(NamedTuple):
    """Where the client has found this gateway."""

    host: str
    port: int


def door_of(request: Request) -> Door:
    """By the header Host: behind a balancer or a port mapping, nobody here knows better."""
    try:
        host, port = request.url.hostname, request.url.port
    except ValueError:
        host = port = None
    return Door(host or "", port or PORTS.get(request.url.scheme, 80))


def queue_row(info: QueueInfo, channels: Iterable[ChannelInfo], dead: int, door: Door) -> m.QueueRow:
    """channels: all that the user is told of; dead: its dead letters that are not sent back"""
    definition, figures = info.definition, info.figures
    own = [each.figures for each in channels if each.definition.label == definition.label]
    return m.QueueRow(
        label=definition.label, host=door.host, port=door.port, created_us=definition.created_us,
        owner=definition.owner, ttl_seconds=definition.ttl_seconds, records_max=definition.records_max,
        bytes_max=definition.bytes_max, when_full=definition.when_full, depth=figures.depth_records,
        depth_bytes=figures.depth_bytes, oldest_us=figures.oldest_us or None, pushed=figures.pushed,
        refused=figures.refused, dropped=figures.dropped, consumers=sum(each.consumers for each in own),
        dead=dead, channels=sorted(info.channels),
    )  # fmt: skip


def channel_row(info: ChannelInfo, door: Door) -> m.ChannelRow:
    definition, figures = info.definition, info.figures
    return m.ChannelRow(
        id=definition.channel_id, host=door.host, port=door.port, label=definition.label,
        topic=topic_shown(definition.topic), created_us=definition.created_us, owner=definition.owner,
        visible_seconds=definition.visible_seconds, tries_max=definition.tries_max,
        dead_letters=definition.dead_letters, is_ordered=definition.is_ordered,
        retry_seconds=definition.retry_seconds, depth=figures.depth_records, consumers=figures.consumers,
        in_flight=figures.in_flight, acknowledged=figures.acknowledged, rejected=figures.rejected, dead=figures.dead,
        share=info.share,
    )  # fmt: skip


def message_row(message: Delivered, *, is_binary: bool) -> m.QueueMessage:
    payload, encoding = shown(message.payload, is_binary=is_binary)
    return m.QueueMessage(
        id=str(message.id), number=message.id.number, topic=topic_shown(message.id.topic), payload=payload,
        encoding=encoding, tries=message.tries, pushed_us=message.pushed_us, key=message.key,
        headers=list(message.headers), content_type=message.content_type, origin=message.origin,
        dead_tries=message.dead_tries,
    )  # fmt: skip


def message_rows(messages: Sequence[Delivered], *, is_binary: bool) -> list[m.QueueMessage]:
    return [message_row(each, is_binary=is_binary) for each in messages]


def topic_shown(topic: str | None) -> str | None:
    """None for messages without one, whose topic nobody names."""
    return None if topic == NO_TOPIC else topic


def pushes(body: bytes, *, is_msgpack: bool) -> list[Push]:
    """The messages of a body: one, or a list of up to 1,000. raises: ValueError"""
    try:
        found = MSGPACK.decode(body) if is_msgpack else JSON.decode(body)
    except msgspec.DecodeError as fault:
        raise ValueError(f"{fault}. {EXPECTED}") from None
    messages: list[m.PushMessage] = found if isinstance(found, list) else [found]
    if not 1 <= len(messages) <= m.MESSAGES_MAX:
        raise ValueError(f"a batch has 1 to {m.MESSAGES_MAX} messages, not {len(messages)}")
    return [push_of(each) for each in messages]


def push_of(message: m.PushMessage) -> Push:
    """raises: ValueError"""
    content_type = message.content_type
    if isinstance(message.payload, bytes):
        payload = message.payload
    else:
        payload, is_json = of_json(bytes(message.payload), message.encoding)
        if is_json:
            content_type = content_type or JSON_TYPE
    return Push(
        payload=payload, topic=message.topic, key=message.key, headers=tuple(message.headers),
        content_type=content_type, delay_seconds=message.delay_seconds, expiry_seconds=message.expiry_seconds,
    )  # fmt: skip


def settings_from(asked: msgspec.Struct, kind: type[Settings]) -> Settings:
    """The settings that a request has, of those fields that `kind` knows."""
    return kind(**{name: getattr(asked, name) for name in kind.__struct_fields__})
