"""Messages of queues: what is pushed, and what a consumer of a channel holds until it answers. No I/O."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePush:
    """A message to push. topic: of the queue, None: none; key: for channels that keep an order

    headers: pairs; delay_seconds: before which nobody gets it; expiry_seconds: None: the queue's time to live"""

    payload: bytes | str
    topic: str | None = None
    key: str | None = None
    headers: Sequence[tuple[str, str]] = ()
    content_type: str = ""
    delay_seconds: float = 0.0
    expiry_seconds: int | None = None

    def fields(self) -> dict[str, object]:
        """As the gateway takes it in MessagePack."""
        payload = self.payload.encode() if isinstance(self.payload, str) else self.payload
        found: dict[str, object] = {"payload": payload, "topic": self.topic, "key": self.key}
        found |= {"headers": list(self.headers), "content_type": self.content_type}
        return found | {"delay_seconds": self.delay_seconds, "expiry_seconds": self.expiry_seconds}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelMessage:
    """A message that this consumer holds until it has answered it, or the channel's visible time is over.

    id: the same for ever, such as "17@sport"; a message that comes again has it again. topic: None: pushed without one.
    tries: which delivery this is, from 1. What MQTT does not tell is "", () and 0: see `Channel`
    source: the consumer's own, by which it knows what it was given"""

    payload: bytes
    topic: str | None
    id: str
    tries: int
    key: str | None
    headers: tuple[tuple[str, str], ...]
    content_type: str
    pushed_us: int
    answer: "Answer" = field(repr=False)
    source: object = field(repr=False, compare=False)

    def acknowledge(self) -> None:
        """It is done. Never waits: the answer is sent at once in the background."""
        self.answer(self, "acknowledge", None)

    def reject(self, delay_seconds: float | None = None) -> None:
        """It failed: a try is counted, and it is given out again after the delay [the channel's], or is a dead letter.

        raises: ValueError over MQTT, which has no rejection"""
        self.answer(self, "reject", delay_seconds)

    def extend(self, seconds: float = 30.0) -> None:
        """Hold it so long from now on. raises: ValueError over MQTT"""
        self.answer(self, "extend", seconds)


# message, what of it, its seconds
Answer = Callable[[ChannelMessage, str, float | None], None]


class Channel(Protocol):
    """A consumer, made by `Client.channel`. Iterate over it, or take batches; answer each message.

    Through the gateway it has all of docs/reference/queues.md (decisions 59 and 64). Over MQTT (a client that knows no
    gateway) it only acknowledges: the rest is given to others when it ends; there are no ids, tries or rejections."""

    too_late: int
    """Answers that came to nothing, for the message was not held any more: it comes again, here or elsewhere."""

    def __aiter__(self) -> AsyncIterator[ChannelMessage]: ...

    async def receive_batch(self, *, messages_max: int | None = None) -> list[ChannelMessage]:
        """Wait for at least one message; returns all that have come. raises: ConnectionLost, Refused, QueueRefused"""

    def acknowledge(self, messages: Sequence[ChannelMessage]) -> None:
        """Many of them at once."""
