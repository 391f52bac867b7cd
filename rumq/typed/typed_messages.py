"""Publish and receive values by their topics. A payload that does not fit is reported, and the stream goes on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rumq.client import Client, Message
from rumq.mqtt.reasons import Reason
from rumq.typed.payload_codec import PayloadMismatch
from rumq.typed.topic import Topic

T = TypeVar("T")
log = logging.getLogger("rumq.typed")


@dataclass(frozen=True, slots=True)
class TypedMessage(Generic[T]):
    """topic: of the value; names: name -> level of its topic name; message: as it came, with offset and time"""

    topic: Topic[T]
    names: dict[str, str]
    value: T
    message: Message


def report(mismatch: PayloadMismatch) -> None:
    """Unless the program says otherwise: a warning of the logger `rumq.typed`, with topic, offset and problem."""
    log.warning("%s", mismatch)


async def publish(
    client: Client, topic: Topic[T], value: T, *, qos: int = 0, retain: bool = False, **names: object
) -> Reason:  # fmt: skip
    """Publish one value; returns and raises as `client.publish`, and as `Topic.outgoing`."""
    return (await client.publish_batch([topic.outgoing(value, qos=qos, retain=retain, **names)]))[0]


async def subscribe(
    client: Client, *topics: Topic[Any], qos: int = 0, from_: str | None = "latest"
) -> list[Reason]:  # fmt: skip
    """Subscribe to each topic's filter.

    from_: as of `client.subscribe`; with one, also "latest", a rumq broker says the offset of each message. None: an
      ordinary subscription, which begins with the retained messages
    """
    return [await client.subscribe(each.filter, qos=qos, from_=from_) for each in topics]


async def messages(
    client: Client, *topics: Topic[T], mismatched: Callable[[PayloadMismatch], None] = report
) -> AsyncIterator[TypedMessage[T]]:  # fmt: skip
    """The values that arrive, without end; each message is acknowledged when the next one is asked for.

    topics: the first whose pattern is that of the topic name says the type
    mismatched: called with each payload that does not fit, and each topic name that is of no pattern
    raises: as `client.messages`
    """
    async for message in client.messages():
        try:
            yield typed(message, topics)
        except PayloadMismatch as fault:
            mismatched(fault)


def typed(message: Message, topics: tuple[Topic[T], ...]) -> TypedMessage[T]:
    """raises: PayloadMismatch"""
    for topic in topics:
        if (names := topic.pattern.maybe_names(message.topic)) is not None:
            return TypedMessage(topic, names, topic.value_of(message), message)
    given = ", ".join(repr(each.pattern) for each in topics)
    raise PayloadMismatch(message.topic, message.offset, f"its name is of no pattern that was given: {given}")
