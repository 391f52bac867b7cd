"""Build MQTT packets by hand, good and broken, and take replies apart. MQTT 5.0 and 3.1.1, chapters 2 and 3.

Written apart from rumq's own codec, so that the two cannot share a mistake. Every packet a broker sends is
checked for its form here, whatever a test asks of it. Knows no socket and no broker."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum


class Kind(IntEnum):
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


class Prop(IntEnum):
    PAYLOAD_FORMAT = 0x01
    MESSAGE_EXPIRY = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    SUBSCRIPTION_ID = 0x0B
    SESSION_EXPIRY = 0x11
    ASSIGNED_CLIENT_ID = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTH_METHOD = 0x15
    AUTH_DATA = 0x16
    REQUEST_PROBLEM_INFO = 0x17
    WILL_DELAY = 0x18
    REQUEST_RESPONSE_INFO = 0x19
    RESPONSE_INFO = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON_STRING = 0x1F
    RECEIVE_MAXIMUM = 0x21
    TOPIC_ALIAS_MAXIMUM = 0x22
    TOPIC_ALIAS = 0x23
    MAXIMUM_QOS = 0x24
    RETAIN_AVAILABLE = 0x25
    USER_PROPERTY = 0x26
    MAXIMUM_PACKET_SIZE = 0x27
    WILDCARD_AVAILABLE = 0x28
    SUBSCRIPTION_ID_AVAILABLE = 0x29
    SHARED_AVAILABLE = 0x2A


BYTES = {0x01: 1, 0x17: 1, 0x19: 1, 0x24: 1, 0x25: 1, 0x28: 1, 0x29: 1, 0x2A: 1}
BYTES |= {0x13: 2, 0x21: 2, 0x22: 2, 0x23: 2, 0x02: 4, 0x11: 4, 0x18: 4, 0x27: 4}
TEXTS = {0x03, 0x08, 0x12, 0x15, 0x1A, 0x1C, 0x1F}
BLOBS = {0x09, 0x16}

Text = str | bytes
Value = int | str | bytes | tuple[Text, Text]
Properties = Iterable[tuple[int, Value]]


def u16(number: int) -> bytes:
    return number.to_bytes(2, "big")


def varint(number: int, width: int = 0) -> bytes:
    """A Variable Byte Integer (1.5.5); `width` forces more bytes than it needs."""
    out = bytearray()
    while True:
        number, low = divmod(number, 128)
        more = number > 0 or len(out) + 1 < width
        out.append(low | 0x80 if more else low)
        if not more:
            return bytes(out)


def blob(data: bytes) -> bytes:
    return u16(len(data)) + data


def text(value: Text) -> bytes:
    """A UTF-8 Encoded String; bytes go out as they are, so that they may be ill-formed."""
    return blob(value if isinstance(value, bytes) else value.encode())


def one_property(number: int, value: Value) -> bytes:
    if isinstance(value, tuple):
        return varint(number) + text(value[0]) + text(value[1])
    if isinstance(value, int):
        return varint(number) + (value.to_bytes(BYTES[number], "big") if number in BYTES else varint(value))
    return varint(number) + text(value)


def properties_of(items: Properties) -> bytes:
    body = b"".join(one_property(number, value) for number, value in items)
    return varint(len(body)) + body


def frame(first_byte: int, body: bytes = b"", width: int = 0) -> bytes:
    return bytes([first_byte]) + varint(len(body), width) + body


@dataclass(frozen=True)
class Will:
    topic: Text
    payload: bytes = b"will"
    qos: int = 0
    retain: bool = False
    properties: Properties = ()


def connect(
    client_id: Text = "",
    version: int = 5,
    *,
    clean: bool = True,
    keep_alive: int = 60,
    properties: Properties = (),
    will: Will | None = None,
    username: Text | None = None,
    password: bytes | None = None,
    name: Text = "",
    flags: int | None = None,
) -> bytes:
    """CONNECT (3.1). `flags` overrides the connect flags that the other arguments imply, `name` MQTT's."""
    bits = 2 * clean | 0x80 * (username is not None) | 0x40 * (password is not None)
    payload = text(client_id)
    if will is not None:
        bits |= 4 | will.qos << 3 | 0x20 * will.retain
        payload += properties_of(will.properties) if version >= 5 else b""
        payload += text(will.topic) + blob(will.payload)
    payload += text(username) if username is not None else b""
    payload += blob(password) if password is not None else b""
    head = text(name or ("MQIsdp" if version == 3 else "MQTT")) + bytes([version])
    head += bytes([bits if flags is None else flags]) + u16(keep_alive)
    return frame(0x10, head + (properties_of(properties) if version >= 5 else b"") + payload)


def publish(
    topic: Text,
    payload: bytes = b"",
    qos: int = 0,
    packet_id: int = 0,
    *,
    retain: bool = False,
    dup: bool = False,
    properties: Properties = (),
    version: int = 5,
) -> bytes:
    head = text(topic) + (u16(packet_id) if qos else b"")
    head += properties_of(properties) if version >= 5 else b""
    return frame(0x30 | dup << 3 | qos << 1 | retain, head + payload)


def ack(kind: Kind, packet_id: int, code: int | None = None, properties: Properties | None = None) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP; without `code` in the two-byte form that all versions share."""
    body = u16(packet_id) + (b"" if code is None else bytes([code]))
    body += b"" if properties is None else properties_of(properties)
    return frame(kind << 4 | (2 if kind == Kind.PUBREL else 0), body)


def subscribe(
    packet_id: int, filters: Iterable[tuple[Text, int]], properties: Properties = (), version: int = 5
) -> bytes:
    head = u16(packet_id) + (properties_of(properties) if version >= 5 else b"")
    return frame(0x82, head + b"".join(text(name) + bytes([options]) for name, options in filters))


def unsubscribe(packet_id: int, filters: Iterable[Text], properties: Properties = (), version: int = 5) -> bytes:
    head = u16(packet_id) + (properties_of(properties) if version >= 5 else b"")
    return frame(0xA2, head + b"".join(text(name) for name in filters))


def disconnect(code: int | None = None, properties: Properties | None = None) -> bytes:
    body = b"" if code is None else bytes([code])
    return frame(0xE0, body + (b"" if properties is None else properties_of(properties)))


def auth(code: int, properties: Properties = ()) -> bytes:
    return frame(0xF0, bytes([code]) + properties_of(properties))


PINGREQ = frame(0xC0)


@dataclass
class Packet:
    """One packet of the broker, taken apart; fields that its kind has not got keep their defaults."""

    kind: Kind
    flags: int = 0
    packet_id: int = 0
    code: int = 0
    codes: list[int] = field(default_factory=list)
    topic: str = ""
    payload: bytes = b""
    properties: list[tuple[int, Value]] = field(default_factory=list)
    session_present: bool = False
    size: int = 0

    @property
    def qos(self) -> int:
        return self.flags >> 1 & 3

    @property
    def retain(self) -> bool:
        return bool(self.flags & 1)

    @property
    def dup(self) -> bool:
        return bool(self.flags & 8)

    def get(self, number: int) -> Value | None:
        return next((value for key, value in self.properties if key == number), None)

    def number(self, key: int, default: int) -> int:
        value = self.get(key)
        return value if isinstance(value, int) else default

    def all(self, number: int) -> list[Value]:
        return [value for key, value in self.properties if key == number]
