"""What passes for a token that may not both read and publish, packet by packet. Knows no socket, no clock.

Refusals are those of the broker's rules (docs/guides/security.md): PUBLISH is answered with 0x87, before MQTT 5 with an
acknowledgement; SUBSCRIBE with 0x87, before MQTT 5 with 0x80. A message for a client that may not read ends it."""

from __future__ import annotations

from collections.abc import Callable

from rumq.gateway.access.tokens import Token
from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import Frame, FrameReader, write_frame
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason

EARLY_BYTES_MAX = 1 << 16  # answers that wait for CONNACK
PING = encode(p.Pingreq(), 4)
Refused = Callable[[str, str], None]


class RoleGate:
    """refused: told of the action and the topic, for an event; packet_bytes_max: in either direction"""

    def __init__(self, version: int, token: Token, packet_bytes_max: int, refused: Refused) -> None:
        self._version, self._refused = version, refused
        self._may_publish, self._may_read = token.may("publish"), token.may("read")
        self._up = FrameReader(packet_bytes_max=packet_bytes_max, version=version)
        self._down = FrameReader(version=version)
        self._early: bytearray | None = bytearray()  # CONNACK is the first packet. MQTT 5.0, 3.2
        self._own_pings = 0  # of ours, whose answers the client does not get

    def from_client(self, data: bytes) -> tuple[bytes, bytes]:
        """What the broker gets, and what the client gets at once. raises: MqttFault"""
        self._up.receive(data)
        up, down = bytearray(), bytearray()
        for frame in self._up.frames():
            answer = self._answer(frame)
            if answer is None:
                up += write_frame(frame.first_byte, frame.body)
                continue
            down += answer
            up += PING  # the broker hears that the client is there
            self._own_pings += 1
        if self._early is None:
            return bytes(up), bytes(down)
        self._early += down
        if len(self._early) > EARLY_BYTES_MAX:
            raise MqttFault("too many packets before CONNACK", Reason.QUOTA_EXCEEDED)
        return bytes(up), b""

    def from_broker(self, data: bytes) -> bytes:
        """What the client gets. raises: MqttFault for a message that it may not read"""
        self._down.receive(data)
        down = bytearray()
        for frame in self._down.frames():
            kind = frame.first_byte >> 4
            if kind == PacketType.PUBLISH and not self._may_read:
                self._refused("read", "")
                raise MqttFault("the session has subscriptions, and this token may not read", Reason.NOT_AUTHORIZED)
            if kind == PacketType.PINGRESP and self._own_pings:
                self._own_pings -= 1
                continue
            down += write_frame(frame.first_byte, frame.body)
            if self._early is not None:
                down += self._early
                self._early = None
        return bytes(down)

    def _answer(self, frame: Frame) -> bytes | None:
        """The refusal of a packet, perhaps of no bytes; None: it passes."""
        kind, version = frame.first_byte >> 4, self._version
        if kind == PacketType.PUBLISH and not self._may_publish:
            packet = decode(frame.first_byte, frame.body, version)
            assert isinstance(packet, p.Publish)
            self._refused("publish", packet.topic)
            if packet.packet_id is None:
                return b""
            made = p.Puback if packet.qos == 1 else p.Pubrec
            return encode(made(packet.packet_id, Reason.NOT_AUTHORIZED if version == 5 else Reason.SUCCESS), version)
        if kind == PacketType.SUBSCRIBE and not self._may_read:
            asked = decode(frame.first_byte, frame.body, version)
            assert isinstance(asked, p.Subscribe)
            self._refused("subscribe", asked.filters[0].topic_filter)
            reason = Reason.NOT_AUTHORIZED if version == 5 else Reason.UNSPECIFIED_ERROR
            return encode(p.Suback(asked.packet_id, (reason,) * len(asked.filters)), version)
        return None
