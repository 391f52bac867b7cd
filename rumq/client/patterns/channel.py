"""A consumer of a channel of a queue: a member of a shared subscription that acknowledges message by message.

The channel's cursor is the group's, at the broker. PUBACK is the acknowledgement; what is not acknowledged when the
consumer ends goes to another one. docs/guides/client.md; MQTT 5.0, 4.8.2."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from rumq.client.patterns.client_port import ClientPort, OpenAnother, receive_from
from rumq.client.session.messages import Message

QUEUES = "$queues/"
CREDIT = 100  # messages that a consumer holds unacknowledged


class ChannelMessage:
    """A message of a queue that this consumer holds until it acknowledges it."""

    __slots__ = ("_client", "_prefix", "message")

    def __init__(self, client: ClientPort, message: Message, prefix: str) -> None:
        self._client, self.message, self._prefix = client, message, prefix

    @property
    def topic(self) -> str:
        """In the queue, without the queue's own name."""
        return self.message.topic.removeprefix(self._prefix)

    @property
    def payload(self) -> bytes:
        return self.message.payload

    def acknowledge(self) -> None:
        """The channel has done with it. Sent once all that came before is acknowledged: MQTT 5.0, 4.6"""
        self._client.acknowledge_some([self.message])


class Channel:
    """A consumer, made by `Client.channel`. Iterate over it, or take batches."""

    def __init__(self, client: ClientPort, label: str) -> None:
        self._client, self._prefix = client, f"{QUEUES}{label}/"

    def __aiter__(self) -> AsyncIterator[ChannelMessage]:
        return self._each()

    async def _each(self) -> AsyncIterator[ChannelMessage]:
        while True:
            for delivery in await self.receive_batch(messages_max=1):
                yield delivery

    async def receive_batch(self, *, messages_max: int | None = None) -> list[ChannelMessage]:
        """Wait for at least one message; returns all that have come. raises: ConnectionLost, Refused"""
        found = await receive_from(self._client, None, messages_max)
        return [ChannelMessage(self._client, message, self._prefix) for message in found]

    def acknowledge(self, deliveries: Sequence[ChannelMessage]) -> None:
        """Many of them at once."""
        self._client.acknowledge_some([delivery.message for delivery in deliveries])


def parse_channel(name: str) -> tuple[str, str]:
    """(label of the queue, id of the channel), in lower case. raises: ValueError"""
    label, slash, channel = name.lower().partition("/")
    if not slash or not label or not channel or set("+#$\0/") & set(label + channel):
        raise ValueError(f"{name!r} names no channel: expected LABEL/CHANNEL, such as news/comments")
    return label, channel


@asynccontextmanager
async def consume(another: OpenAnother, name: str, topic: str = "#", credit: int = CREDIT) -> AsyncIterator[Channel]:
    """Take part in a channel with a session of its own, whose end gives back what is not acknowledged.

    raises: Refused, ConnectionLost; ValueError for a name that is none"""
    label, channel = parse_channel(name)
    options: dict[str, Any] = {
        "client_id": "", "clean_start": True, "session_expiry": 0, "will": None, "receive_maximum": credit,
        "manual_acknowledge": True,
    }  # fmt: skip
    client = await another(options)
    try:
        await client.subscribe(f"$share/{channel}/{QUEUES}{label}/{topic.lower()}", qos=1)
        yield Channel(client, label)
        await client.leave(end_session=True)
    finally:
        client.stop()
