"""What a partition of a simulated disk has: its segments, in order, each with its records as eight bytes.

A packed one has them as four, in a file with another salt: bytes of the one are none of the other.

Knows nothing of what is durable: `tests.cluster.simulation.disk`."""

from __future__ import annotations

from collections.abc import Collection
from struct import pack, unpack, unpack_from

HEADER_BYTES = 16  # before the records of a segment
RECORD_BYTES = 8
PACKED_BYTES = 4
CODES = {RECORD_BYTES: "q", PACKED_BYTES: "i"}


class Segment:
    """width: bytes of a record; salt: of the file"""

    __slots__ = ("base_lsn", "data", "name", "salt", "width")

    def __init__(
        self, name: str, base_lsn: int, data: bytes | bytearray = b"", salt: int = 0, width: int = RECORD_BYTES
    ) -> None:
        self.name, self.base_lsn, self.data = name, base_lsn, bytearray(data)
        self.salt, self.width = salt, width

    @property
    def end_lsn(self) -> int:
        return self.base_lsn + len(self.data) // self.width

    @property
    def values(self) -> list[int]:
        return list(unpack_from(f"<{len(self.data) // self.width}{CODES[self.width]}", self.data))

    @property
    def opening(self) -> bytes:
        """As it is sent: what says how the rest is to be read."""
        return pack("<qq", self.salt, self.width)

    def copy(self) -> Segment:
        return Segment(self.name, self.base_lsn, self.data, self.salt, self.width)

    @property
    def stop(self) -> int:
        return HEADER_BYTES + len(self.data)


class Image:
    """The segments of a partition, in order."""

    def __init__(self) -> None:
        self.first_lsn = 0
        self.segments: list[Segment] = []

    @property
    def end_lsn(self) -> int:
        return self.segments[-1].end_lsn if self.segments else self.first_lsn

    def copy(self) -> Image:
        image = Image()
        image.first_lsn = self.first_lsn
        image.segments = [each.copy() for each in self.segments]
        return image

    def value(self, lsn: int) -> int | None:
        for segment in reversed(self.segments):
            if segment.base_lsn <= lsn:
                at = (lsn - segment.base_lsn) * segment.width
                code = f"<{CODES[segment.width]}"
                return int(unpack_from(code, segment.data, at)[0]) if at < len(segment.data) else None
        return None

    def begins_anew(self, drop: Collection[str], name: str, first_lsn: int) -> bool:
        return first_lsn < self.first_lsn and not name and all(each.name in drop for each in self.segments)

    def cut(self, drop: frozenset[str], name: str, stop: int, first_lsn: int) -> None:
        is_anew = self.begins_anew(drop, name, first_lsn)
        self.segments = [each for each in self.segments if each.name not in drop]
        if name:
            del self.segments[-1].data[stop - HEADER_BYTES :]
        self.trim(first_lsn)
        if is_anew:
            self.first_lsn = first_lsn

    def trim(self, first_lsn: int) -> None:
        self.segments = [each for each in self.segments if each.base_lsn >= first_lsn]
        self.first_lsn = max(self.first_lsn, first_lsn)

    def open(self, name: str, base_lsn: int, opening: bytes = b"") -> None:
        """opening: as of `Segment.opening`, b"": of one as it is written"""
        said = unpack("<qq", opening) if opening else ()
        self.segments.append(Segment(name, base_lsn, b"", *said))

    def pack(self, name: str, salt: int) -> None:
        for segment in self.segments:
            if segment.name == name:
                values = segment.values
                segment.data = bytearray(pack(f"<{len(values)}{CODES[PACKED_BYTES]}", *values))
                segment.salt, segment.width = salt, PACKED_BYTES

    def refill(self, segment: Segment) -> None:
        """It takes the place of the last one."""
        self.segments[-1] = segment.copy()

    def write(self, data: bytes) -> None:
        self.segments[-1].data += data
