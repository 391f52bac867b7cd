"""The few MQTT 3.1.1 packets that the others and their neighbours send, and streams of answers counted."""

import socket
from collections.abc import Sequence

from bench.connections import Address, BenchFault, connect_packet, packet, read_exactly, text

CONNECTED = b"\x20\x02\x00\x00"
ANSWER_S = 30.0


def connect(address: Address, client_id: str, receive_bytes: int = 0) -> socket.socket:
    """A blocking connection that the broker has accepted. receive_bytes: of its socket's buffer; 0: the kernel's"""
    connection = socket.socket()
    if receive_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.settimeout(ANSWER_S)
    connection.connect(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(connect_packet(client_id))
    answer = read_exactly(connection, len(CONNECTED))
    if answer != CONNECTED:
        raise BenchFault(f"CONNACK was {answer.hex(' ')}")
    return connection


def subscribe_packet(filters: Sequence[str], qos: int = 0, packet_id: int = 1) -> bytes:
    asked = b"".join(text(one) + bytes([qos]) for one in filters)
    return packet(0x82, packet_id.to_bytes(2, "big") + asked)


def unsubscribe_packet(filters: Sequence[str], packet_id: int = 1) -> bytes:
    return packet(0xA2, packet_id.to_bytes(2, "big") + b"".join(map(text, filters)))


def publish_packet(topic: str, payload: bytes, qos: int = 0, packet_id: int = 1, *, retain: bool = False) -> bytes:
    number = packet_id.to_bytes(2, "big") if qos else b""
    return packet(0x30 | qos << 1 | retain, text(topic) + number + payload)


def suback_bytes(filters: int) -> int:
    """How long the answer to a SUBSCRIBE is."""
    return len(packet(0x90, bytes(2 + filters)))
