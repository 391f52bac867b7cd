"""Queues, channels and messages as protobuf, and requests as what `rumq.queues` takes. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rumq.queues import (
    ChannelDefinition,
    ChannelInfo,
    ChannelSettings,
    Delivered,
    MessageId,
    Push,
    Pushed,
    PushResult,
    QueueDefinition,
    QueueInfo,
    QueueSettings,
    parse_message_id,
)
from rumq.queues.rules.names import NO_TOPIC
from rumq.services.contract.faults import CallFault
from rumq.services.generated import queues_pb2 as pb
from rumq.services.queues.queue_faults import fault_of

WHEN_FULL = {pb.WHEN_FULL_UNSPECIFIED: "refuse", pb.WHEN_FULL_REFUSE: "refuse", pb.WHEN_FULL_DROP_OLDEST: "drop-oldest"}
DEAD_LETTERS = {pb.DEAD_LETTERS_UNSPECIFIED: "queue", pb.DEAD_LETTERS_QUEUE: "queue", pb.DEAD_LETTERS_DROP: "drop"}
WHEN_FULL_TOLD = {"refuse": pb.WHEN_FULL_REFUSE, "drop-oldest": pb.WHEN_FULL_DROP_OLDEST}
DEAD_LETTERS_TOLD = {"queue": pb.DEAD_LETTERS_QUEUE, "drop": pb.DEAD_LETTERS_DROP}


# Requests


def queue_settings(given: pb.QueueSettings) -> QueueSettings:
    """raises: CallFault; what is out of bounds is found by the queues"""
    fields: dict[str, Any] = {"bytes_max": given.bytes_max}
    if given.ttl_seconds:
        fields["ttl_seconds"] = given.ttl_seconds
    if given.HasField("records_max"):
        fields["records_max"] = given.records_max
    return QueueSettings(**fields, when_full=chosen("when_full", given.when_full, WHEN_FULL))


def channel_settings(given: pb.ChannelSettings) -> ChannelSettings:
    """raises: as `queue_settings`"""
    fields: dict[str, Any] = {"is_ordered": given.is_ordered, "retry_seconds": given.retry_seconds}
    if given.visible_seconds:
        fields["visible_seconds"] = given.visible_seconds
    if given.HasField("tries_max"):
        fields["tries_max"] = given.tries_max
    return ChannelSettings(**fields, dead_letters=chosen("dead_letters", given.dead_letters, DEAD_LETTERS))


def chosen(name: str, value: int, choices: dict[Any, str]) -> Any:
    """raises: CallFault for a number that this version does not know"""
    if value not in choices:
        raise CallFault("ARGUMENT_INVALID", f"{name} = {value} is none of {', '.join(sorted(set(choices.values())))}")
    return choices[value]


def pushes_of(messages: Iterable[pb.PushMessage]) -> list[Push]:
    return [
        Push(
            payload=each.payload, topic=each.topic or None, key=each.key or None,
            headers=tuple((header.name, header.value) for header in each.headers), content_type=each.content_type,
            delay_seconds=each.delay_seconds, expiry_seconds=each.expiry_seconds or None,
        )
        for each in messages
    ]  # fmt: skip


def ids_of(written: Iterable[str]) -> list[MessageId]:
    """Each once. raises: BadQueueRequest"""
    return list(dict.fromkeys(parse_message_id(each) for each in written))


# Answers


def queue_of(info: QueueInfo) -> pb.Queue:
    definition, figures = info.definition, info.figures
    return pb.Queue(
        label=definition.label, settings=told_queue_settings(definition), created_us=definition.created_us,
        owner=definition.owner, depth=figures.depth_records, depth_bytes=figures.depth_bytes,
        oldest_us=figures.oldest_us, pushed=figures.pushed, refused=figures.refused, dropped=figures.dropped,
        channels=info.channels,
    )  # fmt: skip


def told_queue_settings(definition: QueueDefinition) -> pb.QueueSettings:
    return pb.QueueSettings(
        ttl_seconds=definition.ttl_seconds, records_max=definition.records_max, bytes_max=definition.bytes_max,
        when_full=WHEN_FULL_TOLD[definition.when_full],
    )  # fmt: skip


def channel_of(info: ChannelInfo) -> pb.Channel:
    definition, figures = info.definition, info.figures
    return pb.Channel(
        id=definition.channel_id, queue=definition.label, topic=topic_shown(definition.topic),
        settings=told_channel_settings(definition), created_us=definition.created_us, owner=definition.owner,
        depth=figures.depth_records, consumers=figures.consumers, in_flight=figures.in_flight,
        acknowledged=figures.acknowledged, rejected=figures.rejected, dead=figures.dead, share=info.share,
    )  # fmt: skip


def told_channel_settings(definition: ChannelDefinition) -> pb.ChannelSettings:
    return pb.ChannelSettings(
        visible_seconds=definition.visible_seconds, tries_max=definition.tries_max,
        dead_letters=DEAD_LETTERS_TOLD[definition.dead_letters], is_ordered=definition.is_ordered,
        retry_seconds=definition.retry_seconds,
    )  # fmt: skip


def message_of(message: Delivered) -> pb.QueueMessage:
    return pb.QueueMessage(
        id=str(message.id), number=message.id.number, topic=topic_shown(message.id.topic), payload=message.payload,
        tries=message.tries, pushed_us=message.pushed_us, key=message.key or "",
        headers=[pb.Header(name=name, value=value) for name, value in message.headers],
        content_type=message.content_type, origin=message.origin, dead_tries=message.dead_tries,
    )  # fmt: skip


def topic_shown(topic: str | None) -> str:
    """Empty for messages without one, whose topic nobody names."""
    return "" if topic is None or topic == NO_TOPIC else topic


def pushed(
    results: Sequence[PushResult], into: pb.PushToQueueResponse | pb.PushStreamResponse, *, with_ids: bool
) -> None:
    """Add the answers of these messages."""
    at = len(into.ids)
    for number, each in enumerate(results):
        if not isinstance(each, Pushed):
            fault = fault_of(each)
            into.refusals.add(index=at + number, reason=fault.reason, detail=fault.detail)
    into.ids.extend(
        str(each.id) if with_ids and isinstance(each, Pushed) and each.id is not None else "" for each in results
    )
