"""Packets of a broker before a link is up, one at a time and each within a bound. MQTT 5.0, 2.1.4.

Until then a broker is to answer, and nothing else slows it: an answer that is longer than answers are is a fault once
its length is known. Messages may come meanwhile, as long as the broker likes. Behind it the link takes the bytes."""

from __future__ import annotations

import trio

from rumq.client.session.packet_stream import PacketStream
from rumq.errors import ConnectionLost
from rumq.mqtt.decode import decode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.packets import Packet

ANSWER_BYTES_MAX = 2**16  # of a packet that is no message: CONNACK with its properties, a reason and its text


class TooLong(ConnectionLost):
    """A packet that is longer than it can be where it came."""


class SideStream(PacketStream):
    """What is read by `receive_within` is not read by `receive`, and the other way round."""

    def __init__(self, stream: trio.abc.Stream, version: int) -> None:
        super().__init__(stream, version)
        self._mqtt = version
        self._unread = bytearray()
        self._left_out = 0  # bytes that are still to come of a message that nobody wants
        self._kept: list[Packet] = []

    async def receive_within(
        self, answer_bytes_max: int = ANSWER_BYTES_MAX, *, message_bytes_max: int | None = None
    ) -> Packet:
        """The next packet. message_bytes_max: of a PUBLISH; None: they are left out, of any length

        raises: ConnectionLost, TooLong, MqttFault"""
        while True:
            if (packet := self._maybe_packet(answer_bytes_max, message_bytes_max)) is not None:
                return packet
            self._unread += await self.receive_bytes()

    def take_received(self) -> tuple[list[Packet], bytes]:
        packets, self._kept = self._kept, []
        chunk, self._unread = bytes(self._unread), bytearray()
        return packets, chunk

    def unread(self, packets: list[Packet]) -> None:
        """Let `take_received` begin with these."""
        self._kept = packets + self._kept

    def _maybe_packet(self, answer_bytes_max: int, message_bytes_max: int | None) -> Packet | None:
        """None: it is not whole, or it was a message that is left out."""
        buffer = self._unread
        while True:
            left = min(self._left_out, len(buffer))
            del buffer[:left]
            self._left_out -= left
            if self._left_out or (lengths := frame_at(buffer, 0, len(buffer), version=self._mqtt)) is None:
                return None
            header_len, body_len = lengths
            size = header_len + body_len
            is_message = buffer[0] >> 4 == PacketType.PUBLISH
            if is_message and message_bytes_max is None:
                self._left_out = size
                continue
            bytes_max = message_bytes_max if is_message and message_bytes_max is not None else answer_bytes_max
            if size > bytes_max:
                raise TooLong(f"the broker sent a packet of {size} bytes where {bytes_max} is the most")
            if size > len(buffer):
                return None
            packet = decode(buffer[0], bytes(buffer[header_len:size]), self._mqtt)
            del buffer[:size]
            return packet
