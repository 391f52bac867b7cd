"""What the state topic of a query and partition says: the progress marker of earlier attempts, and their probes."""

from __future__ import annotations

from rumq.mqtt.packets import Packet, Publish, Suback, Unsuback
from rumq.sink.progress_marker import ProgressMarker, is_probe, parse
from rumq.table.errors import BrokerCannot

SUBSCRIBE_ID = 65_534


class StateTopic:
    """Read from SUBACK to our own probe, which is published behind it.

    nonce: unique to this attempt, and the payload of its probe; marker: the last one before the probe"""

    def __init__(self, name: str, nonce: str) -> None:
        self.name, self.nonce = name, nonce
        self.marker: ProgressMarker | None = None
        self.suback: Suback | None = None
        self.unsuback: Unsuback | None = None
        self.is_read = False  # our probe has come
        self._unacknowledged: list[Publish] = []

    def takes(self, packet: Packet) -> bool:
        """Whether a packet is about the subscription to it; `is_message` is asked first."""
        if isinstance(packet, Suback) and packet.packet_id == SUBSCRIBE_ID and self.suback is None:
            self.suback = packet
            return True
        if isinstance(packet, Unsuback) and packet.packet_id == SUBSCRIBE_ID:
            self.unsuback = packet
            return True
        return False

    def is_message(self, packet: Packet) -> bool:
        return isinstance(packet, Publish) and packet.topic == self.name and packet.qos < 2

    def keeps(self, packet: Publish) -> bool:
        """Take a message; returns whether its acknowledgement waits for `take_unacknowledged`.

        The last marker before our probe counts. One that comes again (DUP) is an old one.
        raises: BrokerCannot"""
        if self.is_read:
            if packet.retain and not packet.dup:
                raise BrokerCannot("sends a retained message behind one that was published later")
            return False
        self._unacknowledged.append(packet)
        if packet.dup:
            return True
        if packet.payload == self.nonce.encode():
            self.is_read = True
        elif packet.retain:
            self.marker = parse(self.name, packet.payload)
        elif not is_probe(packet.payload):
            # The marker of an attempt that has no PUBACK: it took effect after our SUBSCRIBE, so it comes live.
            self.marker = parse(self.name, packet.payload) if packet.payload else None
        return True

    def probes(self) -> list[str]:
        """Of the attempts whose session this one has."""
        return [packet.payload.decode(errors="replace") for packet in self._unacknowledged if packet.dup]

    def take_unacknowledged(self) -> list[Publish]:
        """Messages to acknowledge: all but our probe. The session redelivers it to later attempts, which identifies the
        session. The probe is the last message, so the order is kept. MQTT 5.0, 4.6"""
        kept, self._unacknowledged = self._unacknowledged, []
        return [packet for packet in kept if packet.payload != self.nonce.encode()]
