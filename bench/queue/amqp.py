"""As much of AMQP 0-9-1 as a producer and a consumer need: frames, methods, publisher confirms. No sockets.

https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf; confirms are RabbitMQ's own."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
END = 0xCE
GREETING = b"AMQP\0\0\x09\x01"
FRAME_MAX = 131_072
DELIVER, ACK, NACK = (60, 60), (60, 80), (60, 120)


class Frame(NamedTuple):
    kind: int
    channel: int
    body: bytes


def frame(kind: int, channel: int, body: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(body)) + body + bytes((END,))


def method(channel: int, of: int, number: int, arguments: bytes = b"") -> bytes:
    return frame(METHOD, channel, struct.pack(">HH", of, number) + arguments)


def short(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


def table(**fields: str) -> bytes:
    body = b"".join(short(name.replace("_", "-")) + b"S" + long(value.encode()) for name, value in fields.items())
    return struct.pack(">I", len(body)) + body


def long(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def start_ok(user: str, password: str) -> bytes:
    return method(0, 10, 11, table() + short("PLAIN") + long(f"\0{user}\0{password}".encode()) + short("en_US"))


TUNE_OK = method(0, 10, 31, struct.pack(">HIH", 1, FRAME_MAX, 0))
OPEN = method(0, 10, 40, short("/") + b"\0\0")
CHANNEL_OPEN = method(1, 20, 10, b"\0")
CONFIRM_SELECT = method(1, 85, 10, b"\0")


def declare_quorum(queue: str) -> bytes:
    """Durable, on the disk of this node before it confirms."""
    return method(1, 50, 10, b"\0\0" + short(queue) + b"\x02" + table(x_queue_type="quorum"))


def qos(count: int) -> bytes:
    return method(1, 60, 10, struct.pack(">IHB", 0, count, 0))


def consume(queue: str) -> bytes:
    return method(1, 60, 20, b"\0\0" + short(queue) + short("") + b"\0" + table())


def publish(queue: str, payload: bytes) -> bytes:
    """Persistent, to the default exchange."""
    head = struct.pack(">HHQHB", 60, 0, len(payload), 0x1000, 2)
    routed = method(1, 60, 40, b"\0\0" + short("") + short(queue) + b"\0")
    return routed + frame(HEADER, 1, head) + frame(BODY, 1, payload)


def ack(tag: int, *, multiple: bool) -> bytes:
    return method(1, 60, 80, struct.pack(">QB", tag, multiple))


class Frames:
    """Bytes as they come, cut into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def receive(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= 8:
            kind, channel, size = struct.unpack_from(">BHI", self._buffer, at)
            if len(self._buffer) - at < size + 8:
                break
            yield Frame(kind, channel, bytes(self._buffer[at + 7 : at + 7 + size]))
            at += size + 8
        del self._buffer[:at]


def method_of(body: bytes) -> tuple[int, int]:
    of, number = struct.unpack_from(">HH", body)
    return of, number
