"""Topics of some clients under a place of their own: put before what they say, taken off what they are told.

Whole frames in, whole frames out. A frame that is malformed goes on as it is: whoever takes it refuses it. Response
topics and user properties are content, and stay. Knows no socket, no session."""

from __future__ import annotations

import dataclasses

from rumq.mqtt import packets as p
from rumq.mqtt.connect import version_of_connect
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.wire import write_variable_integer

CONNECT, PUBLISH, SUBSCRIBE, UNSUBSCRIBE = 1, 3, 8, 10
TOPIC_BYTES_MAX = 65_535


class Mount:
    """One connection's. point: what its topics begin with in the broker, such as "site-7/" """

    def __init__(self, point: str) -> None:
        self.point = point
        self._bytes = point.encode()
        self._version = 4

    def inward(self, first_byte: int, body: bytes) -> bytes:
        """A frame of the client, as the broker is to have it. raises: MqttFault for a topic that becomes too long"""
        kind = first_byte >> 4
        if kind == PUBLISH:
            return self._published(first_byte, body)
        try:
            if kind == CONNECT:
                self._version = version_of_connect(body)
                return self._connected(first_byte, body)
            if kind in (SUBSCRIBE, UNSUBSCRIBE):
                return self._asked(first_byte, body)
        except MqttFault:
            pass
        return frame(first_byte, body)

    def outward(self, first_byte: int, body: bytes) -> bytes:
        """A frame for the client, as it is to have it."""
        if first_byte >> 4 != PUBLISH:
            return frame(first_byte, body)
        length = int.from_bytes(body[:2], "big")
        topic = body[2 : 2 + length]
        if not topic.startswith(self._bytes):
            return frame(first_byte, body)
        topic = topic[len(self._bytes) :]
        return frame(first_byte, b"".join((len(topic).to_bytes(2, "big"), topic, body[2 + length :])))

    def _published(self, first_byte: int, body: bytes) -> bytes:
        length = int.from_bytes(body[:2], "big")
        if not length or len(body) < 2 + length:  # an alias stands for a topic that was told before
            return frame(first_byte, body)
        length += len(self._bytes)
        if length > TOPIC_BYTES_MAX:
            raise MqttFault(f"a topic of {length} bytes with the mount point {self.point!r} before it")
        return frame(first_byte, b"".join((length.to_bytes(2, "big"), self._bytes, body[2:])))

    def _connected(self, first_byte: int, body: bytes) -> bytes:
        packet = decode(first_byte, body, self._version)
        assert isinstance(packet, p.Connect)
        if packet.will is None:
            return frame(first_byte, body)
        will = dataclasses.replace(packet.will, topic=self.point + packet.will.topic)
        return encode(dataclasses.replace(packet, will=will), self._version)

    def _asked(self, first_byte: int, body: bytes) -> bytes:
        packet = decode(first_byte, body, self._version)
        if isinstance(packet, p.Subscribe):
            filters = tuple(
                dataclasses.replace(each, topic_filter=self._under(each.topic_filter))
                for each in packet.filters
            )
            return encode(dataclasses.replace(packet, filters=filters), self._version)
        assert isinstance(packet, p.Unsubscribe)
        names = tuple(self._under(name) for name in packet.filters)
        return encode(dataclasses.replace(packet, filters=names), self._version)

    def _under(self, topic_filter: str) -> str:
        """A filter under the mount point; of a share and of a replay the part that is one."""
        for prefix in ("$share/", "$log/"):
            if topic_filter.startswith(prefix):
                name, slash, rest = topic_filter[len(prefix) :].partition("/")
                if slash:
                    return f"{prefix}{name}/{self.point}{rest}"
        return self.point + topic_filter


def frame(first_byte: int, body: bytes) -> bytes:
    return b"".join((bytes([first_byte]), write_variable_integer(len(body)), body))
