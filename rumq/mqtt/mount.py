"""Mount points: a prefix is added to the topics that a client sends, and removed from those that it receives.

Whole frames in, whole frames out. A topic passes with the prefix or not at all: a frame in which no topic can be found
ends the connection; any other fault is left to the decoder. Response topics and user properties are content and do not
change. MQTT 5.0, 3.1.3.3, 3.3.2.1, 3.8.3 and 3.10.3."""

from __future__ import annotations

import dataclasses

from rumq.mqtt.connect import decode_connect, version_of_connect
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MalformedPacket, MqttFault, PacketTooLarge, TopicFilterInvalid, TopicNameInvalid
from rumq.mqtt.frames import PACKET_BYTES_MAX, write_frame
from rumq.mqtt.kernels import filters
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.wire import Fields

CONNECT, PUBLISH = PacketType.CONNECT, PacketType.PUBLISH
TOPIC_BYTES_MAX = 65_535
# The bytes of options behind each filter.
LISTS = {PacketType.SUBSCRIBE: 1, PacketType.UNSUBSCRIBE: 0}


class OutsideTheMount(ValueError):
    """A message for a client whose topic is not under its mount point."""


class Mount:
    """One connection's. point: what its topics begin with in the broker, such as "site-7/"

    packet_bytes_max: of a packet with the mount point in it
    version: as CONNECT says, 0 before"""

    def __init__(self, point: str, packet_bytes_max: int = PACKET_BYTES_MAX) -> None:
        self.point = point
        self.version = 0
        self._bytes = point.encode()
        self._packet_bytes_max = packet_bytes_max

    def inward(self, first_byte: int, body: bytes) -> bytes:
        """A frame of the client, with the prefix. Cost: a copy of the frame. raises: MqttFault"""
        kind = first_byte >> 4
        if kind == PUBLISH:
            return self._published(first_byte, body)
        if kind in LISTS:
            return self._asked(first_byte, body, LISTS[PacketType(kind)])
        if kind == CONNECT and not self.version:
            return self._connected(first_byte, body)
        return write_frame(first_byte, body)

    def outward(self, first_byte: int, body: bytes) -> bytes:
        """A frame for the client, without the prefix. raises: OutsideTheMount"""
        if first_byte >> 4 != PUBLISH:
            return write_frame(first_byte, body)
        length = int.from_bytes(body[:2], "big")
        if not length:  # an alias stands for a topic that was told before
            return write_frame(first_byte, body)
        topic = body[2 : 2 + length]
        if not topic.startswith(self._bytes):
            raise OutsideTheMount(f"a message whose topic is not under the mount point {self.point!r}")
        topic = topic[len(self._bytes) :]
        return write_frame(first_byte, b"".join((len(topic).to_bytes(2, "big"), topic, body[2 + length :])))

    def _published(self, first_byte: int, body: bytes) -> bytes:
        length = int.from_bytes(body[:2], "big")
        if len(body) < 2 + length:
            raise MalformedPacket("a PUBLISH that ends inside its topic")
        if not length:
            return write_frame(first_byte, body)
        length += len(self._bytes)
        if length > TOPIC_BYTES_MAX:
            raise TopicNameInvalid(f"a topic of {length} bytes with the mount point {self.point!r} before it")
        return write_frame(first_byte, b"".join((length.to_bytes(2, "big"), self._bytes, body[2:])))

    def _connected(self, first_byte: int, body: bytes) -> bytes:
        try:
            version = version_of_connect(body)
            packet = decode_connect(first_byte, body)
        except MqttFault:
            return write_frame(first_byte, body)  # the session decodes it likewise, and refuses it in its own words
        self.version = version
        if packet.will is None:
            return write_frame(first_byte, body)
        topic = self.point + packet.will.topic
        if len(topic.encode()) > TOPIC_BYTES_MAX:
            raise TopicNameInvalid(f"the will's topic is too long with the mount point {self.point!r} before it")
        will = dataclasses.replace(packet.will, topic=topic)
        return encode(dataclasses.replace(packet, will=will), version)

    def _asked(self, first_byte: int, body: bytes, options: int) -> bytes:
        fields = Fields(body)
        fields.two_bytes("packet identifier")
        if self.version == 5:
            fields.part("properties")
        at, prefix = fields.at, self._bytes
        count = filters.measured(body, at, options, len(prefix))
        if count == -1:
            raise MalformedPacket("the packet ends inside a topic filter")
        if count == -2:
            raise TopicFilterInvalid(f"a topic filter that is too long with the mount point {self.point!r} before it")
        size = len(body) + count * len(prefix)
        if size > self._packet_bytes_max:
            raise PacketTooLarge(
                f"a packet of {size} bytes with the mount point {self.point!r} before its {count} filters"
            )
        return write_frame(first_byte, body[:at] + filters.prefixed(body, at, options, prefix))
