"""One MQTT 3.1.1 round trip over a plain socket: CONNECT, SUBSCRIBE, PUBLISH at QoS 1, and the message comes back."""

import socket
import struct
import time
from zlib import crc32

CONNACK, PUBLISH, PUBACK, SUBACK = 0x20, 0x30, 0x40, 0x90
TOPIC = "cluster/ready"


class RoundTripFailed(Exception):
    """The broker refused, closed the connection or was silent."""


def round_trip(address: tuple[str, int], name: str, shard: int, shards: int, seconds: float) -> None:
    """A client whose home is that shard publishes to a topic of that shard's partition, and gets it.

    shards: their number, and that of the partitions. raises: RoundTripFailed, OSError"""
    until = time.monotonic() + seconds
    client_id, topic = hashed(name, shard, shards), hashed(f"{TOPIC}/{name}", shard, shards)
    with socket.create_connection(address, seconds) as sock:
        reader = Reader(sock, until)
        sock.sendall(packet(0x10, text("MQTT") + bytes([4, 2]) + struct.pack(">H", 30) + text(client_id)))
        if reader.until(CONNACK)[1] != 0:
            raise RoundTripFailed("CONNACK refuses")
        sock.sendall(packet(0x82, struct.pack(">H", 1) + text(topic) + b"\0"))
        if reader.until(SUBACK)[2] & 0x80:
            raise RoundTripFailed("SUBACK refuses")
        sock.sendall(packet(0x32, text(topic) + struct.pack(">H", 2) + name.encode()))
        wanted = {PUBACK, PUBLISH}
        while wanted:
            wanted.discard(reader.packet()[0])
        sock.sendall(packet(0xE0, b""))


def hashed(name: str, remainder: int, count: int) -> str:
    """`name` with a number that gives its CRC-32 that remainder; client ids and topics are placed by it."""
    return next(each for n in range(10_000) if crc32((each := f"{name}-{n}").encode()) % count == remainder)


def text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


def packet(first: int, body: bytes) -> bytes:
    assert len(body) < 128
    return bytes([first, len(body)]) + body


class Reader:
    """Packets of a socket, all of them short, until a deadline (monotonic)."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until, self._buffer = sock, until, b""

    def until(self, kind: int) -> bytes:
        while (found := self.packet())[0] != kind:
            pass
        return found[1]

    def packet(self) -> tuple[int, bytes]:
        """Its kind, in the upper four bits, and its body."""
        while len(self._buffer) < 2 or len(self._buffer) < 2 + self._buffer[1]:
            self._sock.settimeout(max(0.01, self._until - time.monotonic()))
            data = self._sock.recv(4096)
            if not data:
                raise RoundTripFailed("the connection was closed")
            self._buffer += data
        size = 2 + self._buffer[1]
        body, self._buffer = self._buffer[:size], self._buffer[size:]
        return body[0] & 0xF0, body[2:]
