"""Packets before CONNACK, from bytes: CONNECT, and AUTH while it is asked for. MQTT 5.0, 3.1 and 4.12."""
# compiled: warm

from __future__ import annotations

from rumq.mqtt import packets as p
from rumq.mqtt.connect import version_of_connect
from rumq.mqtt.decode import decode
from rumq.mqtt.errors import MqttFault, ProtocolViolation, UnsupportedVersion
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packet_types import FIRST_BYTE, PacketType
from rumq.mqtt.reasons import Reason
from rumq.session.connection.client_state import Client
from rumq.session.connection.packet_order import IN_THE_MIDDLE
from rumq.session.handshake.foreign_protocol import NO_TLS, TLS_RECORD, describe

VERSION_BYTES = 9  # of the oldest CONNECT: the protocol's name with its length, and the version behind it
CONNECT = FIRST_BYTE[PacketType.CONNECT]
BEHIND_CONNECT = (PacketType.AUTH, PacketType.DISCONNECT)


def read_connect(client: Client, data: bytearray, pos: int, end: int) -> tuple[p.Connect | None, int]:
    """(CONNECT, where it ends); None while it is not all here. raises: MqttFault"""
    if end - pos >= 1 and data[pos] != CONNECT:
        if data[pos] == TLS_RECORD:
            client.transport.write(NO_TLS)
        raise ProtocolViolation(describe(bytes(data[pos : min(end, pos + 64)])))
    body, stop = read_body(client, data, pos, end, "CONNECT")
    if body is None:
        return None, pos
    client.version = version_of(body)
    packet = decode(CONNECT, body, client.version)
    assert isinstance(packet, p.Connect)
    return packet, stop


def read_packet(client: Client, data: bytearray, pos: int, end: int) -> tuple[p.Packet | None, int]:
    """The same for AUTH and DISCONNECT, the only packets behind CONNECT that are taken before CONNACK."""
    if end - pos >= 1 and data[pos] >> 4 not in BEHIND_CONNECT:
        raise ProtocolViolation(IN_THE_MIDDLE.why.format(name_of(data[pos] >> 4)))
    body, stop = read_body(client, data, pos, end, "packet before CONNACK")
    return (None, pos) if body is None else (decode(data[pos], body, client.version), stop)


def name_of(packet_type: int) -> str:
    return PacketType(packet_type).name if packet_type else "a packet of type 0"


def read_body(client: Client, data: bytearray, pos: int, end: int, name: str) -> tuple[bytes | None, int]:
    """(the body of the packet at `pos`, where it ends); None while it is not all here. raises: MqttFault"""
    found = frame_at(data, pos, end)
    head, size = found or (0, 0)
    stop = pos + head + size
    limit = min(client.limits.packet_bytes_max, client.limits.connect_bytes_max)
    if head + size > limit and (client.version or end - pos - head >= VERSION_BYTES):
        # It is told in the words of its version, which stands at the beginning.
        client.version = client.version or version_of(bytes(data[pos + head : pos + head + VERSION_BYTES]))
        raise MqttFault(f"a {name} of {head + size} bytes, the limit is {limit}", Reason.PACKET_TOO_LARGE)
    if not client.broker.logins.may_buffer(client, end - pos):
        raise MqttFault("too much is kept of clients that have not logged in", Reason.SERVER_BUSY)
    return (bytes(data[pos + head : stop]), stop) if found is not None and stop <= end else (None, pos)


def version_of(body: bytes) -> int:
    """The version of MQTT that a CONNECT is in. raises: MqttFault"""
    try:
        return version_of_connect(body)
    except UnsupportedVersion as fault:
        if body[2:6] == b"MQTT" and body[:2] == b"\x00\x04":
            raise
        # Another protocol's name: who speaks it would not understand a CONNACK. MQTT 3.1.1, 3.1.2.1.
        raise ProtocolViolation(fault.message) from None
