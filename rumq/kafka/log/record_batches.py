"""Record batches of chunks: topics are decided once, the kernel writes, a checksum is added.

https://kafka.apache.org/documentation/#recordbatch"""

from __future__ import annotations

import struct
from collections.abc import Callable

from crc32c import crc32c

from commitlog import Chunk
from rumq.kafka.kernels.record_batches import (
    BATCH_HEADER_BYTES,
    CRC_AT,
    CRC_FROM,
    UNWANTED,
    WANTED,
    put_batch,
    topic_at,
    undecided_rows,
)

CRC = struct.Struct(">I")
EMPTY = struct.Struct(">hiqqqhii")  # what the checksum of a batch without records counts
HEAD = struct.Struct(">qiibI")
SPAN_MAX = (1 << 31) - 1  # offsets of one batch
BATCH_BYTES_MIN = 256  # that must be free for another batch
BUFFER_BYTES_MIN = 4096
FRAME_WORD, ROW_WORDS = 1, 8


class TopicVerdicts:
    """Which topics of a partition are wanted, by their id. wants: asked once for each topic"""

    def __init__(self, wants: Callable[[str], bool]) -> None:
        self._wants = wants
        self.verdicts = bytearray()

    def decide(self, chunk: Chunk, first: int) -> None:
        """Have a verdict on every topic from row `first` on."""
        words = memoryview(chunk.rows).cast("B").cast("I")
        while rows := undecided_rows(chunk.rows, self.verdicts, first):
            for row in rows:
                topic_id = words[row * ROW_WORDS]
                if topic_id >= len(self.verdicts):
                    # Doubling, as a new topic usually has the next id.
                    self.verdicts += bytes(max(topic_id + 1, 2 * len(self.verdicts)) - len(self.verdicts))
                topic = topic_at(chunk.frames, words[row * ROW_WORDS + FRAME_WORD]).decode(errors="replace")
                self.verdicts[topic_id] = WANTED if self._wants(topic) else UNWANTED


class BatchWriter:
    """Batches of one answer for one partition, up to `bytes_max`.

    parts: the batches; size: their bytes; records: in them; end: the offset behind the last batch"""

    def __init__(self, table: TopicVerdicts | None, at: int, *, clears: bool) -> None:
        """table: None: every topic is wanted; at: the first offset wanted; clears: as `put_batch` takes it"""
        self._table, self._clears = table, clears
        self.parts: list[memoryview | bytes] = []
        self.size = self.records = 0
        self._is_full = False  # a record did not fit
        self.end = at

    def has_room(self, bytes_max: int) -> bool:
        """Whether another batch may be added. One record fits always, if nothing is there yet."""
        return not self.records or (not self._is_full and self.size + BATCH_BYTES_MIN <= bytes_max)

    def add(self, chunk: Chunk, bytes_max: int) -> int:
        """The offset of the first record that was not looked at: the chunk's end, unless there is no more room."""
        if self._table is not None:
            self._table.decide(chunk, 0)
        verdicts = None if self._table is None else self._table.verdicts
        row = 0
        while row < chunk.count and self.has_room(bytes_max):
            row = self._add_batch(chunk, row, verdicts, max(0, bytes_max - self.size))
        return chunk.base_lsn + row

    def _add_batch(self, chunk: Chunk, row: int, verdicts: bytearray | None, bytes_max: int) -> int:
        """The next row."""
        likely = len(chunk.frames) + 64 * (chunk.count - row)  # headers take more than properties
        buffer = bytearray(max(BUFFER_BYTES_MIN, min(bytes_max, likely)))
        stop, records, next_row, need = put_batch(chunk, row, verdicts, self._clears, buffer, 0, bytes_max)
        if need and not records:
            buffer = bytearray(need)
            stop, records, next_row, need = put_batch(chunk, row, verdicts, self._clears, buffer, 0, bytes_max)
        if records:
            data = memoryview(buffer)[:stop]
            CRC.pack_into(buffer, CRC_AT, crc32c(data[CRC_FROM:]))
            self.parts.append(data)
            self.size += stop
            self.records += records
            self.end = chunk.base_lsn + next_row
            self._is_full = next_row < chunk.count and not need
        return next_row

    def span(self, end: int) -> None:
        """Have the answer reach to `end`, behind which a client asks next: there is no wanted record before."""
        while self.end < end:
            batch = empty_batch(self.end, min(end, self.end + SPAN_MAX))
            self.parts.append(batch)
            self.size += len(batch)
            self.end = min(end, self.end + SPAN_MAX)


def empty_batch(start: int, end: int) -> bytes:
    """A batch without records for the offsets start..end, as compaction leaves them."""
    counted = EMPTY.pack(0, end - start - 1, -1, -1, -1, -1, -1, 0)
    return HEAD.pack(start, BATCH_HEADER_BYTES - 12, -1, 2, crc32c(counted)) + counted
