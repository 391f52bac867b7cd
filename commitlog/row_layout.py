"""A row: the 32 bytes that a chunk has of each record. docs/reference/log-format.md, "Chunk".

Kernels, which need these as C constants, repeat them: tests/mqtt/kernels/test_constants.py compares them."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

# Topic id, frame position, topic offset, µs after base_ts, payload position in the frame, publisher, flags, zero.
ROW = Struct("<IIQIIIHH")
ROW_BYTES = ROW.size
ROW_WORDS = ROW_BYTES // 4
FRAME_WORD, TS_WORD, PAYLOAD_WORD, PUBLISHER_WORD = 1, 4, 5, 6
ROW_FLAGS_AT = 28
ROW_QOS, ROW_RETAIN, ROW_EXPIRY, ROW_V5, ROW_PROPERTIES, ROW_EMPTY = 3, 4, 8, 16, 32, 64
TAG = Struct("<II")  # of an inbound QoS 2 message: row, session tag << 16 | packet id


def tag_publishers(rows: bytes | bytearray | memoryview, tags: bytes) -> Iterator[tuple[int, int, int]]:
    """(row, publisher number, session tag << 16 | packet id) of each tag."""
    words = memoryview(rows).cast("B").cast("I")
    for row, packet_id in TAG.iter_unpack(tags):
        yield row, words[row * ROW_WORDS + PUBLISHER_WORD], packet_id
