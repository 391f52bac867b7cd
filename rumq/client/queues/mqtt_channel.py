"""A consumer of a channel over MQTT: a member of a shared subscription that acknowledges message by message.

The channel's cursor is the group's, at the broker. PUBACK is the acknowledgement; what is not acknowledged when the
consumer ends goes to another one. docs/guides/client.md; MQTT 5.0, 4.8.2."""

import unicodedata
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from rumq.client.patterns.client_port import ClientPort, OpenAnother, receive_from
from rumq.client.queues.queue_errors import WAY_OUT
from rumq.client.queues.queue_messages import ChannelMessage
from rumq.client.session.messages import Message

QUEUES, DEAD = "$queues/", ".dead"
NO_TOPIC = "__none__"
CREDIT = 100  # messages that a consumer holds unacknowledged


class MqttChannel:
    def __init__(self, client: ClientPort, root: str) -> None:
        """root: of the topics of the queue"""
        self._client, self._root = client, root
        self.too_late = 0

    def __aiter__(self) -> AsyncIterator[ChannelMessage]:
        return self._each()

    async def _each(self) -> AsyncIterator[ChannelMessage]:
        while True:
            for message in await self.receive_batch(messages_max=1):
                yield message

    async def receive_batch(self, *, messages_max: int | None = None) -> list[ChannelMessage]:
        return [self._held_message(each) for each in await receive_from(self._client, None, messages_max)]

    def acknowledge(self, messages: Sequence[ChannelMessage]) -> None:
        self._client.acknowledge_some(each.source for each in messages if isinstance(each.source, Message))

    def _held_message(self, message: Message) -> ChannelMessage:
        topic = message.topic.removeprefix(self._root)
        pairs = tuple((name, value) for name, value in message.properties.get("user_properties", ()))
        keys = [value for name, value in pairs if name == "rumq-key"]
        return ChannelMessage(
            payload=message.payload, topic=None if topic == NO_TOPIC else topic, id="", tries=0,
            key=keys[0] if keys else None, headers=tuple(pair for pair in pairs if not pair[0].startswith("rumq-")),
            content_type=message.properties.get("content_type", ""), pushed_us=0, answer=self._answer,
            source=message,
        )  # fmt: skip

    def _answer(self, message: ChannelMessage, what: str, seconds: float | None) -> None:
        if what != "acknowledge":
            raise ValueError(f"MQTT can only acknowledge: to {what} messages, {WAY_OUT}")
        self.acknowledge([message])


def parse_channel(name: str) -> tuple[str, str]:
    """(label of the queue, id of the channel), in lower case. raises: ValueError"""
    label, slash, channel = folded(name).partition("/")
    if not slash or not label or not channel or set("+#$\0/") & set(label + channel):
        raise ValueError(f"{name!r} names no channel: expected LABEL/CHANNEL, such as news/comments")
    return label, channel


def folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).lower())


def root_of(label: str) -> str:
    """Of a queue's topics; dead letters have their own."""
    return f"{QUEUES}$dead/{label.removesuffix(DEAD)}/" if label.endswith(DEAD) else f"{QUEUES}{label}/"


@asynccontextmanager
async def consume_over_mqtt(
    another: OpenAnother, name: str, topic: str = "#", credit: int = CREDIT
) -> AsyncIterator[MqttChannel]:
    """Take part in a channel with a session of its own, whose end gives back what is not acknowledged.

    raises: Refused, ConnectionLost; ValueError for a name that is none"""
    label, channel = parse_channel(name)
    options: dict[str, Any] = {
        "client_id": "", "clean_start": True, "session_expiry": 0, "will": None, "receive_maximum": credit,
        "manual_acknowledge": True,
    }  # fmt: skip
    client = await another(options)
    try:
        await client.subscribe(f"$share/{channel}/{root_of(label)}{folded(topic)}", qos=1)
        yield MqttChannel(client, root_of(label))
        await client.leave(end_session=True)
    finally:
        client.stop()
