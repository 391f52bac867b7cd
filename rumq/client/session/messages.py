"""Messages as the application sees them: to publish, and received."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to publish. properties: those of PUBLISH, MQTT 5 only."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = field(default_factory=Properties)

    def with_user_properties(self, more: Mapping[str, str]) -> "Outgoing":
        """The same with these user properties, unless it has one of their names."""
        pairs = self.properties.get("user_properties", [])
        if any(name in more for name, _ in pairs):
            return self
        return replace(self, properties=Properties({**self.properties, "user_properties": [*pairs, *more.items()]}))


@dataclass(slots=True)
class Receipt:
    """What is needed to acknowledge a message. connection: on no other one is the acknowledgement valid"""

    packet_id: int
    qos: int
    connection: int
    is_acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A message from the broker. retain: it was retained; dup: it may be a redelivery; receipt: None at QoS 0"""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    properties: Properties
    receipt: Receipt | None = field(default=None, repr=False, compare=False)

    @property
    def offset(self) -> int | None:
        """Its offset in the topic, from 0; only on a replay (MQTT 5)."""
        return maybe_number(self.maybe_user_property("rumq-offset"))

    @property
    def lsn(self) -> int | None:
        """Its lsn in the partition, from 0; only on a replay (MQTT 5)."""
        return maybe_number(self.maybe_user_property("rumq-lsn"))

    @property
    def partition(self) -> str | None:
        """The partition that stores it; only on a replay (MQTT 5)."""
        return self.maybe_user_property("rumq-partition")

    @property
    def response_topic(self) -> str | None:
        """Where the sender of a request expects the response (MQTT 5)."""
        return self.properties.get("response_topic")

    @property
    def correlation_data(self) -> bytes | None:
        """Which request a response answers (MQTT 5)."""
        return self.properties.get("correlation_data")

    @property
    def time(self) -> str | None:
        """When the broker received it, RFC 3339; only on a replay (MQTT 5)."""
        return self.maybe_user_property("rumq-time")

    def maybe_user_property(self, name: str) -> str | None:
        """The last user property of this name: the broker appends its own after the publisher's."""
        found = None
        for key, value in self.properties.get("user_properties", ()):
            if key == name:
                found = value
        return found


def as_message(publish: Publish, topic: str, receipt: Receipt | None = None) -> Message:
    """The message of a PUBLISH. topic: its own, or the one its alias stands for."""
    properties = publish.properties
    if "topic_alias" in properties:
        properties = properties.copy()
        del properties["topic_alias"]  # meaningful only on its connection
    return Message(topic, publish.payload, publish.qos, publish.retain, publish.dup, properties, receipt)


def maybe_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 20 else None
