"""Take a broker's packet apart and refuse a wrong form. MQTT 5.0 and 3.1.1, chapters 2 and 3.

Every test reads through here, so every reply of every test is checked: reserved flags, shortest lengths, the
reason codes and properties of that packet, well-formed strings, nothing left over. Knows no socket."""

from tests.conformance.wire import BLOBS, BYTES, TEXTS, Kind, Packet, Value

ACK = {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}
CODES = {
    Kind.CONNACK: {0x00, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, *range(0x99, 0x9E), 0x9F},
    Kind.PUBACK: ACK,
    Kind.PUBREC: ACK,
    Kind.PUBREL: {0x00, 0x92},
    Kind.PUBCOMP: {0x00, 0x92},
    Kind.SUBACK: {0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2},
    Kind.UNSUBACK: {0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91},
    Kind.DISCONNECT: {0x00, *range(0x80, 0x84), 0x87, 0x89, *range(0x8B, 0x91), *range(0x93, 0xA3)},
    Kind.AUTH: {0x00, 0x18},
}
REASONS = {0x1F, 0x26}
PROPERTIES = {
    Kind.CONNACK: {0x11, 0x12, 0x13, 0x15, 0x16, 0x1A, 0x1C, 0x21, 0x22, 0x24, 0x25, 0x27, 0x28, 0x29, 0x2A} | REASONS,
    Kind.PUBLISH: {0x01, 0x02, 0x03, 0x08, 0x09, 0x0B, 0x23, 0x26},
    Kind.DISCONNECT: {0x1C} | REASONS,  # Session Expiry Interval is the client's alone: MQTT-3.14.2-2
    Kind.AUTH: {0x15, 0x16} | REASONS,
}
REPEATABLE = {0x0B, 0x26}
NEVER_ZERO = {0x0B, 0x21, 0x23, 0x27}
FLAGS = {Kind.PUBREL: 2}
FROM_BROKER = {*Kind} - {Kind.CONNECT, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE, Kind.PINGREQ}


class Malformed(AssertionError):
    """A broker sent what the standard does not allow."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Malformed(what)


class Reader:
    """Cut fields off one packet's body, in order."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        require(self.left() >= size, f"{size} more bytes wanted, {self.left()} there: {self.data.hex()}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def varint(self) -> int:
        total = 0
        for place in range(4):
            byte = self.number(1)
            total |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                require(byte > 0 or place == 0, "a length in more bytes than it needs")
                return total
        raise Malformed("a length of more than four bytes")

    def blob(self) -> bytes:
        return self.take(self.number(2))

    def text(self) -> str:
        value = self.blob()
        require(b"\0" not in value, "U+0000 in a string")
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise Malformed(f"not UTF-8: {value!r}") from None

    def properties(self, kind: Kind) -> list[tuple[int, Value]]:
        part = Reader(self.take(self.varint()))
        items: list[tuple[int, Value]] = []
        while part.left():
            key = part.varint()
            require(key in PROPERTIES.get(kind, REASONS), f"property {key:#04x} in {kind.name}")
            require(key in REPEATABLE or key not in dict(items), f"property {key:#04x} twice in {kind.name}")
            items.append((key, part.value(key)))
        return items

    def value(self, key: int) -> Value:
        if key in BYTES:
            number = self.number(BYTES[key])
            require(BYTES[key] > 1 or number < 2, f"property {key:#04x} is {number}")
            require(number > 0 or key not in NEVER_ZERO, f"property {key:#04x} is zero")
            return number
        if key in TEXTS:
            return self.text()
        if key in BLOBS:
            return self.blob()
        if key == 0x26:
            return self.text(), self.text()
        number = self.varint()
        require(number > 0, "subscription identifier 0")
        return number


def frame_size(buffer: bytes) -> tuple[int, int] | None:
    """(header bytes, whole bytes) of the first packet in `buffer`; None when its length is not all there."""
    lengths = buffer[1:5]
    end = next((place for place, byte in enumerate(lengths) if byte < 0x80), None)
    if end is None:
        require(len(lengths) < 4, "a Remaining Length of more than four bytes")
        return None
    return 2 + end, 2 + end + Reader(lengths).varint()


def decode(first_byte: int, body: bytes, version: int) -> Packet:
    """Take one packet apart; raise Malformed where it is not what a broker of `version` may send."""
    require(first_byte >> 4 != 0, "packet type 0")
    packet = Packet(Kind(first_byte >> 4), first_byte & 15)
    kind, reader = packet.kind, Reader(body)
    require(kind in FROM_BROKER, f"{kind.name} from a broker")
    require(kind == Kind.PUBLISH or packet.flags == FLAGS.get(kind, 0), f"flags {packet.flags} in {kind.name}")
    if kind == Kind.PUBLISH:
        read_publish(packet, reader, version)
    elif kind == Kind.CONNACK:
        flags = reader.number(1)
        packet.code, packet.session_present = reader.number(1), flags == 1
        require(flags < 2, f"acknowledge flags {flags}")
        require(not packet.session_present or packet.code == 0, "session present beside a refusal")
        packet.properties = reader.properties(kind) if version >= 5 else []
        require(version >= 5 or packet.code < 6, f"return code {packet.code}")
    elif kind in (Kind.SUBACK, Kind.UNSUBACK):
        packet.packet_id = reader.number(2)
        packet.properties = reader.properties(kind) if version >= 5 else []
        packet.codes = list(reader.take(reader.left()))
        require(version >= 5 or kind == Kind.SUBACK or not packet.codes, "UNSUBACK with a payload")
        require(version >= 5 or {*packet.codes} <= {0, 1, 2, 0x80}, f"return codes {packet.codes}")
        require({*packet.codes} <= CODES[kind], f"codes {packet.codes} in {kind.name}")
    elif kind != Kind.PINGRESP:
        read_reason(packet, reader, version)
    require(reader.left() == 0, f"{reader.left()} bytes after a {kind.name}")
    return packet


def read_publish(packet: Packet, reader: Reader, version: int) -> None:
    require(packet.qos < 3, "QoS 3")
    require(packet.qos > 0 or not packet.dup, "DUP with QoS 0")
    packet.topic = reader.text()
    require("+" not in packet.topic and "#" not in packet.topic, f"wildcard in topic {packet.topic}")
    if packet.qos:
        packet.packet_id = reader.number(2)
        require(packet.packet_id > 0, "packet identifier 0")
    packet.properties = reader.properties(Kind.PUBLISH) if version >= 5 else []
    packet.payload = reader.take(reader.left())


def read_reason(packet: Packet, reader: Reader, version: int) -> None:
    """PUBACK, PUBREC, PUBREL, PUBCOMP, DISCONNECT and AUTH: an optional code, then optional properties."""
    if packet.kind < Kind.SUBSCRIBE:
        packet.packet_id = reader.number(2)
        require(packet.packet_id > 0, f"packet identifier 0 in {packet.kind.name}")
    else:
        require(version >= 5, f"{packet.kind.name} from a broker before MQTT 5")
    if version >= 5 and reader.left():
        packet.code = reader.number(1)
        require(packet.code in CODES[packet.kind], f"code {packet.code:#04x} in {packet.kind.name}")
        packet.properties = reader.properties(packet.kind) if reader.left() else []
