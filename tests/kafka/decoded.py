"""Record batches, read as Kafka's documentation describes them and by nothing of rumq."""

from __future__ import annotations

from typing import NamedTuple

from crc32c import crc32c


class KafkaRecord(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


class Batch(NamedTuple):
    """end: the offset behind it; max_timestamp: as it says"""

    base: int
    end: int
    max_timestamp: int
    records: list[KafkaRecord]


class Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        assert 0 <= size <= len(self.data) - self.at
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def varint(self) -> int:
        value = place = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << place
            place += 7
            if byte < 128:
                return (value >> 1) ^ -(value & 1)

    def maybe_bytes(self) -> bytes | None:
        size = self.varint()
        return None if size < 0 else self.take(size)


def batches(data: bytes) -> list[Batch]:
    """Every byte is accounted for."""
    rest, found = Bytes(data), []
    while rest.at < len(data):
        base, size = rest.number(8), rest.number(4)
        body = Bytes(rest.take(size))
        assert body.number(4) == -1 and body.number(1) == 2
        assert body.number(4) & 0xFFFFFFFF == crc32c(body.data[9:])
        assert body.number(2) == 0  # not compressed, times of creation, no transaction
        span, first, last = body.number(4), body.number(8), body.number(8)
        assert (body.number(8), body.number(2), body.number(4)) == (-1, -1, -1)
        records = [record(body, base, first) for _ in range(body.number(4))]
        assert body.at == len(body.data)
        assert all(base <= each.offset <= base + span for each in records)
        assert not records or last == max(each.timestamp for each in records)
        found.append(Batch(base, base + span + 1, last, records))
    return found


def record(body: Bytes, base: int, first: int) -> KafkaRecord:
    size = body.varint()
    stop = body.at + size
    assert body.number(1) == 0
    timestamp, offset = first + body.varint(), base + body.varint()
    key, value = body.maybe_bytes(), body.maybe_bytes()
    headers = []
    for _ in range(body.varint()):
        name = body.maybe_bytes()
        assert name is not None
        headers.append((name.decode(), body.maybe_bytes() or b""))
    assert body.at == stop
    return KafkaRecord(offset, timestamp, key, value, headers)
