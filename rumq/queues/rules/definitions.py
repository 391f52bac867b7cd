"""Definitions of queues and channels, as they are retained: JSON, versioned, fields of later versions are skipped.

docs/reference/queues.md, "Definitions"."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from rumq.queues.rules.errors import BadQueueRequest

VERSION = 1
WhenFull: TypeAlias = Literal["refuse", "drop-oldest"]
SECONDS_MAX = 30 * 86400
Seconds = Annotated[float, Meta(ge=0, le=SECONDS_MAX)]
Count = Annotated[int, Meta(ge=0, le=1 << 53)]

Settings = TypeVar("Settings", bound=msgspec.Struct)


class QueueSettings(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What its creator chooses of a queue.

    ttl_seconds: a message that is older is gone; records_max, bytes_max: bound of what is not consumed; 0: none
    when_full: what happens to a message above the bound"""

    ttl_seconds: Annotated[int, Meta(ge=1, le=SECONDS_MAX)] = 600
    records_max: Count = 10_000
    bytes_max: Count = 0
    when_full: WhenFull = "refuse"


class ChannelSettings(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What its creator chooses of a channel.

    visible_seconds: a delivered message that is not acknowledged so long is given to another consumer
    tries_max: deliveries after which it is a dead letter; 0: any number
    dead_letters: "queue": to `<label>.dead`, which is created with the channel; "drop": counted, and gone
    is_ordered: of the messages with one key the next is delivered when the one before is acknowledged
    retry_seconds: between a failed try and the next"""

    visible_seconds: Annotated[float, Meta(ge=0.1, le=86400)] = 30.0
    tries_max: Annotated[int, Meta(ge=0, le=1000)] = 5
    dead_letters: Literal["queue", "drop"] = "queue"
    is_ordered: bool = False
    retry_seconds: Seconds = 0.0


class QueueDefinition(QueueSettings, kw_only=True, frozen=True, omit_defaults=True):
    """created_us: µs since 1970; messages from before are of an earlier queue of that label. version: of this form"""

    label: str
    created_us: int
    owner: str = ""
    version: int = VERSION


class ChannelDefinition(ChannelSettings, kw_only=True, frozen=True, omit_defaults=True):
    """topic: None: all of the queue; created_us: as of a queue; owner: the user who created it"""

    channel_id: str
    label: str
    created_us: int
    topic: str | None = None
    owner: str = ""
    version: int = VERSION


def fields_of(settings: msgspec.Struct, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a kind of settings, of these or of a definition with them."""
    return {name: getattr(settings, name) for name in kind.__struct_fields__}


def settings_of(definition: msgspec.Struct, kind: type[Settings]) -> Settings:
    return kind(**fields_of(definition, kind))


def checked_settings(settings: Settings) -> Settings:
    """The same. raises: BadQueueRequest for what is out of its bounds: a Struct checks nothing where it is made"""
    try:
        return msgspec.convert(msgspec.to_builtins(settings), type(settings))
    except msgspec.ValidationError as fault:
        raise BadQueueRequest(f"the settings cannot be meant: {fault}") from None


def encoded(definition: QueueDefinition | ChannelDefinition) -> bytes:
    return msgspec.json.encode(definition)


def parse_queue(text: bytes) -> QueueDefinition:
    """raises: ValueError"""
    return msgspec.json.decode(text, type=QueueDefinition)


def parse_channel(text: bytes) -> ChannelDefinition:
    """raises: ValueError"""
    return msgspec.json.decode(text, type=ChannelDefinition)
