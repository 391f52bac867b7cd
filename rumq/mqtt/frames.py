"""Split an MQTT byte stream into frames, independent of how it arrives; write a frame. MQTT 5.0, 2.1.4 and 1.5.5."""
# compiled: warm

from collections.abc import Iterator
from typing import Final, NamedTuple

from rumq.mqtt.errors import MalformedPacket, PacketTooLarge
from rumq.mqtt.wire import VARIABLE_INTEGER_MAX, write_variable_integer

PACKET_BYTES_MAX: Final = VARIABLE_INTEGER_MAX + 5
"""The largest packet MQTT can express, its first byte and its remaining length included."""


class Frame(NamedTuple):
    """One packet, not yet understood: what `decode` takes."""

    first_byte: int
    body: bytes


def frame_at(
    buffer: bytes | bytearray | memoryview, start: int, end: int, *, version: int = 0
) -> tuple[int, int] | None:
    """The bytes of the fixed header and of the body of the frame that begins at `start`.

    The body may still be on its way: all of it is there once `start + header + body <= end`.

    end:     where the received bytes end, exclusive
    version: 5 refuses a remaining length in more bytes than it needs, as 1.5.5 asks; before 5, and until
             CONNECT has told the version, it is legal
    returns: None while the fixed header itself is not whole
    raises:  MalformedPacket for a remaining length of five bytes
    """
    body_len = 0
    for size in (1, 2, 3, 4):
        at = start + size
        if at >= end:
            return None
        byte = buffer[at]
        body_len |= (byte & 0x7F) << 7 * (size - 1)
        if byte < 0x80:
            if byte == 0 and size > 1 and version == 5:
                raise MalformedPacket("the remaining length is written in more bytes than it needs")
            return size + 1, body_len
    raise MalformedPacket("the remaining length has more than four bytes")


def write_frame(first_byte: int, *parts: bytes) -> bytes:
    """A frame whose body is `parts` joined. raises: ValueError if that is longer than MQTT can express"""
    return b"".join((bytes((first_byte,)), write_variable_integer(sum(map(len, parts))), *parts))


class FrameReader:
    """Collects received bytes until frames are whole. version: set it once CONNECT was decoded."""

    def __init__(self, *, packet_bytes_max: int = PACKET_BYTES_MAX, version: int = 0) -> None:
        self.packet_bytes_max, self.version = packet_bytes_max, version
        self._buffer = bytearray()

    @property
    def buffered_bytes(self) -> int:
        """The size of the unfinished frame."""
        return len(self._buffer)

    def take_buffered(self) -> bytes:
        """The bytes of the unfinished frame, which somebody else goes on with."""
        taken = bytes(self._buffer)
        self._buffer.clear()
        return taken

    def receive(self, chunk: bytes | bytearray | memoryview) -> None:
        self._buffer += chunk

    def frames(self) -> Iterator[Frame]:
        """Yield each whole frame. A faulty one raises after the good ones before it, and again ever after.

        raises: MalformedPacket; PacketTooLarge as soon as the length is known, before the body is there
        """
        start = 0
        try:
            while (lengths := frame_at(self._buffer, start, len(self._buffer), version=self.version)) is not None:
                header_len, body_len = lengths
                if (size := header_len + body_len) > self.packet_bytes_max:
                    raise PacketTooLarge(f"a packet of {size} bytes, the limit is {self.packet_bytes_max}")
                if start + size > len(self._buffer):
                    return
                first_byte, body_at = self._buffer[start], start + header_len
                start += size
                # bytes, not a view: while a view lives, receive() cannot grow the buffer.
                yield Frame(first_byte, bytes(self._buffer[body_at:start]))
        finally:
            del self._buffer[:start]
