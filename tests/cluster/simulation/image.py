"""What a partition of a simulated disk has: its segments, in order, each with its records as eight bytes.

Knows nothing of what is durable: `tests.cluster.simulation.disk`."""

from __future__ import annotations

from collections.abc import Collection
from struct import unpack_from

HEADER_BYTES = 16  # before the records of a segment
RECORD_BYTES = 8


class Segment:
    __slots__ = ("base_lsn", "data", "name")

    def __init__(self, name: str, base_lsn: int, data: bytes | bytearray = b"") -> None:
        self.name, self.base_lsn, self.data = name, base_lsn, bytearray(data)

    @property
    def end_lsn(self) -> int:
        return self.base_lsn + len(self.data) // RECORD_BYTES

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
        image.segments = [Segment(each.name, each.base_lsn, each.data) for each in self.segments]
        return image

    def value(self, lsn: int) -> int | None:
        for segment in reversed(self.segments):
            if segment.base_lsn <= lsn:
                at = (lsn - segment.base_lsn) * RECORD_BYTES
                return int(unpack_from("<q", segment.data, at)[0]) if at < len(segment.data) else None
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

    def open(self, name: str, base_lsn: int) -> None:
        self.segments.append(Segment(name, base_lsn))

    def write(self, data: bytes) -> None:
        self.segments[-1].data += data
