"""The data types of MQTT on the wire: integers, UTF-8 strings, binary data, string pairs. MQTT 5.0, 1.5.

`Fields` reads them from a packet's body in order; the functions write them. A fault of the peer is a MalformedPacket; a
value that cannot be sent is a ValueError."""
# compiled: hot

from typing import Final, NoReturn

from rumq.mqtt.errors import MalformedPacket

STRING_BYTES_MAX: Final = 65_535
VARIABLE_INTEGER_MAX: Final = 268_435_455


class Fields:
    """Takes the fields of `body[at:end]` in order. The names given are for the fault's sentence."""

    __slots__ = ("at", "body", "end")

    def __init__(self, body: bytes, at: int = 0, end: int | None = None) -> None:
        self.body, self.at = body, at
        self.end = len(body) if end is None else end

    def __bool__(self) -> bool:
        """Whether any byte is left."""
        return self.at < self.end

    def byte(self, name: str) -> int:
        at = self.at
        if at >= self.end:
            self._ends_inside(name, 1)
        self.at = at + 1
        return self.body[at]

    def two_bytes(self, name: str) -> int:
        at = self.at
        if at + 2 > self.end:
            self._ends_inside(name, 2)
        self.at = at + 2
        return self.body[at] << 8 | self.body[at + 1]

    def four_bytes(self, name: str) -> int:
        return int.from_bytes(self.take(4, name))

    def variable_integer(self, name: str) -> int:
        """1.5.5: one to four bytes, no more of them than are needed."""
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.byte(name)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise MalformedPacket(f"the {name} is written in more bytes than it needs")
                return value
        raise MalformedPacket(f"the {name} has more than four bytes")

    def binary(self, name: str) -> bytes:
        """1.5.6: up to 65,535 bytes."""
        return self.take(self.two_bytes(name), name)

    def string(self, name: str) -> str:
        """1.5.4: well-formed UTF-8, no U+0000. Control and non-characters pass, a byte order mark stays."""
        raw = self.binary(name)
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise MalformedPacket(f"the {name} is not UTF-8: {error.reason} at byte {error.start}") from None
        if "\0" in text:
            raise MalformedPacket(f"the {name} has the forbidden character U+0000")
        return text

    def pair(self, name: str) -> tuple[str, str]:
        """1.5.7: a name and a value."""
        return self.string(name), self.string(name)

    def take(self, count: int, name: str) -> bytes:
        """The next `count` bytes."""
        at = self.at
        stop = at + count
        if stop > self.end:
            self._ends_inside(name, count)
        self.at = stop
        return self.body[at:stop]

    def rest(self) -> bytes:
        """All bytes that are left: a payload."""
        at, self.at = self.at, self.end
        return self.body[at : self.end]

    def part(self, name: str) -> "Fields":
        """The fields inside the next part, which its length precedes as a variable byte integer."""
        length = self.variable_integer(f"length of the {name}")
        at, stop = self.at, self.at + length
        if stop > self.end:
            self._ends_inside(name, length)
        self.at = stop
        return Fields(self.body, at, stop)

    def finish(self) -> None:
        """Nothing may follow."""
        if self.at < self.end:
            raise MalformedPacket(f"the packet is too long for what it says, by {self.end - self.at} bytes")

    def _ends_inside(self, name: str, wanted: int) -> NoReturn:
        raise MalformedPacket(f"the packet ends inside its {name}: {self.end - self.at} of {wanted} bytes are there")


def write_integer(value: int, size: int) -> bytes:
    """raises: ValueError where `value` does not fit in `size` bytes"""
    try:
        return value.to_bytes(size)
    except OverflowError:
        raise ValueError(f"{value} does not fit in {size} bytes without a sign") from None


def write_variable_integer(value: int) -> bytes:
    """raises: ValueError above 268,435,455"""
    if 0 <= value < 0x80:
        return bytes((value,))
    if not 0 <= value <= VARIABLE_INTEGER_MAX:
        raise ValueError(f"{value} does not fit in a variable byte integer, which ends at {VARIABLE_INTEGER_MAX}")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_binary(value: bytes) -> bytes:
    """raises: ValueError above 65,535 bytes"""
    if len(value) > STRING_BYTES_MAX:
        raise ValueError(f"{len(value)} bytes do not fit in a field of {STRING_BYTES_MAX}")
    return len(value).to_bytes(2) + value


def write_string(value: str) -> bytes:
    """raises: ValueError for U+0000, a surrogate, or above 65,535 bytes"""
    if "\0" in value:
        raise ValueError("a string of MQTT must not have the character U+0000")
    return write_binary(value.encode())


def write_pair(pair: tuple[str, str]) -> bytes:
    name, value = pair
    return write_string(name) + write_string(value)
