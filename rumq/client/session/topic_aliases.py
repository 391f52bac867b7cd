"""Topic aliases of what we publish: the first topics of a connection get numbers.

MQTT 5.0, 3.3.2.3.4. They end with the connection. No I/O."""

from dataclasses import replace

from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties


class TopicAliases:
    """wanted: how many at most; the broker says how many it takes, with CONNACK"""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._maximum = 0
        self._numbers: dict[str, int] = {}

    def connected(self, maximum: int) -> None:
        """maximum: the broker's Topic Alias Maximum, 0: none"""
        self._maximum = min(self._wanted, maximum)
        self._numbers.clear()

    def apply(self, packet: Publish) -> Publish:
        """The packet with its alias in place of the topic, or beside it the first time; or as it is."""
        if not self._maximum:
            return packet
        number = self._numbers.get(packet.topic)
        if number is not None:
            return replace(packet, topic="", properties=with_alias(packet.properties, number))
        if len(self._numbers) >= self._maximum:
            return packet
        number = self._numbers[packet.topic] = len(self._numbers) + 1
        return replace(packet, properties=with_alias(packet.properties, number))

    def withdraw(self, packet: Publish) -> None:
        """A packet with a topic and its alias could not be sent: the broker knows nothing of the alias."""
        if packet.topic and "topic_alias" in packet.properties:
            del self._numbers[packet.topic]


def with_alias(properties: Properties, number: int) -> Properties:
    return Properties({**properties, "topic_alias": number})
