"""A stored message as the PUBLISH of a connection: its version, QoS and packet id, and what is left of its expiry.

MQTT 5.0, 3.3. Frames that need only other bits and another id are patched, not encoded anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rumq.client.outbox.outbox_log import StoredMessage
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Publish


@dataclass(slots=True)
class StoredPacket:
    """frame: with any packet id, at `id_at`"""

    frame: bytearray
    id_at: int

    def encoded(self, packet_id: int, *, dup: bool) -> bytearray:
        frame = self.frame
        frame[0] |= dup << 3
        frame[self.id_at : self.id_at + 2] = packet_id.to_bytes(2)
        return frame


def maybe_packet(message: StoredMessage, version: int, qos: int, now_us: int) -> StoredPacket | None:
    """None: it has expired. now_us: 0: expiry is not looked at"""
    frame = bytearray(message.frame)
    sizes = frame_at(frame, 0, len(frame), version=5)
    assert sizes is not None
    if version < 5 or (message.expires and now_us):
        packet = decode(frame[0], bytes(frame[sizes[0] :]), 5)
        assert isinstance(packet, Publish)
        properties = packet.properties.copy()
        if message.expires and now_us:
            left = properties["message_expiry_interval"] - max(0, now_us - message.time_us) // 1_000_000
            if left <= 0:
                return None
            properties["message_expiry_interval"] = left
        frame = bytearray(encode(replace(packet, properties=properties), version))
        sizes = frame_at(frame, 0, len(frame))
        assert sizes is not None
    frame[0] = 0x30 | qos << 1 | message.is_retained
    topic_at = sizes[0]
    return StoredPacket(frame, topic_at + 2 + int.from_bytes(frame[topic_at : topic_at + 2]))
