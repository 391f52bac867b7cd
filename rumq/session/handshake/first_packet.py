"""What a connection sends before it is in: CONNECT, and AUTH while it is asked for it. MQTT 5.0, 3.1 and 4.12.

Knows no session yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rumq.mqtt import packets as p
from rumq.mqtt.connect import version_of_connect
from rumq.mqtt.decode import decode
from rumq.mqtt.errors import MqttFault, ProtocolViolation, UnsupportedVersion
from rumq.mqtt.frames import frame_at
from rumq.mqtt.reasons import Reason
from rumq.session.handshake.connect import accept
from rumq.session.handshake.foreign_protocol import NO_TLS, TLS_RECORD, stranger

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link

VERSION_BYTES = 9  # of the oldest CONNECT: the protocol's name with its length, and the version behind it


def first_packet(link: Link, data: Any, pos: int, end: int) -> int:
    """Take CONNECT, if it is here; returns the position of the first byte not taken. raises: MqttFault"""
    if end - pos >= 1 and data[pos] != 0x10:
        if data[pos] == TLS_RECORD:
            link.transport.write(NO_TLS)
        raise ProtocolViolation(stranger(bytes(data[pos : min(end, pos + 64)])))
    content, stop = whole(link, data, pos, end, "CONNECT")
    keep(link, end - pos)
    if content is None:
        return pos
    if data[pos] == 0x10:
        link.version = spoken(content)
    packet = decode(data[pos], content, link.version)
    assert isinstance(packet, p.Connect)
    link.claimed = link.entrance.client_id_of(packet, link.certificate)
    if link.claimed and link.house.hand_over(link, link.claimed, data[pos:end]):
        link.closed = True
        return end
    accept(link, packet)
    return stop


def whole(link: Link, data: Any, pos: int, end: int, name: str) -> tuple[bytes | None, int]:
    """What is in the packet at `pos`, and where it ends; None while it is not all here."""
    found = frame_at(data, pos, end)
    if found is None:
        return None, pos
    head, body = found
    limit = min(link.limits.packet_bytes_max, link.limits.connect_bytes_max)
    if head + body > limit:
        if not link.version and end - pos - head < VERSION_BYTES:
            return None, pos  # it is told in the words of its version, which stands at the beginning
        link.version = link.version or spoken(bytes(data[pos + head : pos + head + VERSION_BYTES]))
        raise MqttFault(f"a {name} of {head + body} bytes, the limit is {limit}", Reason.PACKET_TOO_LARGE)
    stop = pos + head + body
    return (bytes(data[pos + head : stop]), stop) if stop <= end else (None, pos)


def while_entering(link: Link, data: Any, pos: int, end: int) -> int:
    """Take the AUTH packets that the client is asked for, and nothing else."""
    try:
        while link.entering is not None and link.entering.asked and not link.closed:
            content, stop = whole(link, data, pos, end, "packet before CONNACK")
            keep(link, end - pos)
            if content is None:
                return pos
            packet = decode(data[pos], content, link.version)
            pos = stop
            link.entering.answered(packet)
    except MqttFault as fault:
        link.refuse(fault)
    if link.closed:
        return end
    if link.entering is None and link.wire is not None:
        return link.receive(data, pos, end)
    return pos


def keep(link: Link, size: int) -> None:
    """So many bytes of it are kept until it has logged in, or the next have come. raises: MqttFault"""
    if not link.house.keeps(link, size):
        raise MqttFault("too much is kept of clients that have not logged in", Reason.SERVER_BUSY)


def spoken(content: bytes) -> int:
    """The version of MQTT that a CONNECT is in. raises: MqttFault"""
    try:
        return version_of_connect(content)
    except UnsupportedVersion as fault:
        if content[2:6] == b"MQTT" and content[:2] == b"\x00\x04":
            raise
        # Another protocol's name: who speaks it would not understand a CONNACK. MQTT 3.1.1, 3.1.2.1.
        raise ProtocolViolation(fault.message) from None
