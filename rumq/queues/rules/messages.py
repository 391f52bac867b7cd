"""What doors and queues exchange: messages to push, answers, messages to consume, and what is told of a queue."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from rumq.queues.rules.definitions import ChannelDefinition, QueueDefinition
from rumq.queues.rules.errors import QueueError
from rumq.queues.rules.names import MessageId

Headers = tuple[tuple[str, str], ...]
FIXED_BYTES = 100  # of a message beside its payload and headers, about


class Push(msgspec.Struct, kw_only=True, frozen=True):
    """A message to push. topic: None: without one

    key: messages of one key are consumed in order, on channels that ask for it; headers: MQTT's user properties
    delay_seconds: before which nobody gets it; expiry_seconds: None: the queue's time to live, which is the longest"""

    payload: bytes
    topic: str | None = None
    key: str | None = None
    headers: Headers = ()
    content_type: str = ""
    delay_seconds: float = 0.0
    expiry_seconds: int | None = None


class Pushed(NamedTuple):
    """A message that is as safe as its stream promises. id: None: not due yet, or its place is not known here"""

    id: MessageId | None


class Delivered(NamedTuple):
    """A message for a consumer. tries: which delivery this is, from 1; 0: only looked at; pushed_us: µs since 1970

    origin, dead_tries: of a dead letter: its first topic and id, and how often it was tried; else "", 0"""

    id: MessageId
    payload: bytes
    tries: int
    pushed_us: int
    key: str | None = None
    headers: Headers = ()
    content_type: str = ""
    origin: str = ""
    dead_tries: int = 0

    @property
    def size(self) -> int:
        """Bytes, about: of the payload and what goes with it."""
        size = len(self.payload) + FIXED_BYTES
        for name, value in self.headers:
            size += len(name) + len(value)
        return size


class QueueFigures(NamedTuple):
    """An estimate, some hundred ms old. depth_records, depth_bytes: behind the slowest channel, unexpired

    oldest_us: when the oldest of them was pushed, µs since 1970; 0: there is none
    pushed, refused, dropped: messages, by this process since its start"""

    depth_records: int = 0
    depth_bytes: int = 0
    oldest_us: int = 0
    pushed: int = 0
    refused: int = 0
    dropped: int = 0


class QueueInfo(NamedTuple):
    """What is told of a queue. channels: their ids"""

    definition: QueueDefinition
    figures: QueueFigures
    channels: tuple[str, ...]


class ChannelFigures(NamedTuple):
    """depth_records: not acknowledged yet, in_flight of them with consumers of this process; dead: dead letters"""

    depth_records: int = 0
    consumers: int = 0
    in_flight: int = 0
    acknowledged: int = 0
    rejected: int = 0
    dead: int = 0


class ChannelInfo(NamedTuple):
    """What is told of a channel. share: what a consumer over MQTT subscribes to"""

    definition: ChannelDefinition
    figures: ChannelFigures
    share: str


PushResult = Pushed | QueueError
