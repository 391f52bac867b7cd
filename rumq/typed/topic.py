"""A topic with the type of its values: `Topic("plant/{pump}/temperature", Temperature)`."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from rumq.client import Message, Outgoing, Properties
from rumq.typed.payload_codec import Encoding, PayloadCodec, PayloadMismatch
from rumq.typed.topic_pattern import TopicPattern

T = TypeVar("T")
UTF_8 = 1  # payload format indicator: MQTT 5.0, 3.3.2.3.2


class Topic(Generic[T]):
    """Topics of one pattern, whose payloads are values of one type.

    pattern: with names for levels, `plant/{pump}/temperature`
    kind: a msgspec.Struct, a dataclass, or what else msgspec decodes to; unknown fields are ignored, as it says
    encoding: how values are published; received are both, by the content type of each message
    raises: ValueError for a pattern that is none, TypeError for a type that msgspec does not know
    """

    def __init__(self, pattern: str, kind: type[T], *, encoding: Encoding = "json") -> None:
        self.pattern = TopicPattern(pattern)
        self._codec = PayloadCodec(kind, encoding)

    @property
    def filter(self) -> str:
        """What to subscribe to."""
        return self.pattern.filter

    def outgoing(self, value: T, *, qos: int = 0, retain: bool = False, **names: object) -> Outgoing:
        """A value as a message, for `client.publish_batch`. names: of the pattern's levels

        raises: TypeError for a value of another type, ValueError for other names"""
        properties = Properties(content_type=self._codec.content_type)
        if self._codec.encoding == "json":
            properties["payload_format_indicator"] = UTF_8
        return Outgoing(self.pattern.topic(names), self._codec.encode(value), qos, retain, properties)

    def value_of(self, message: Message) -> T:
        """raises: PayloadMismatch, never anything else"""
        try:
            return self._codec.decode(message.payload, message.properties.get("content_type"))
        except (msgspec.DecodeError, ValueError, RecursionError) as fault:
            raise PayloadMismatch(message.topic, message.offset, str(fault) or type(fault).__name__) from None

    def __repr__(self) -> str:
        return f"Topic({self.pattern!r}, {self._codec.kind!r})"
