"""One partition as one subscription reads it: chunks from where it stands, turned into records of protobuf.

Only parts of files are read that may have wanted topics. Blocks, unless `is_in_memory`; one thread at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from commitlog import Chunk, Gap
from commitlog.read.partition_view import PartitionView
from rumq.services.kernels.record_messages import put_records, topic_at
from rumq.services.reading.log_tail import FollowedLog

Decide = Callable[[str, str], tuple[int, int] | None]  # topic and partition: as `starts.Wanted.from_where`
TOPICS_MAX = 100_000  # decided topics that are remembered
FRAME_WORD, ROW_WORDS = 1, 8
NO_PUBLISHERS: dict[int, bytes] = {}


class Filled(NamedTuple):
    """What one turn gave. data: serialized records; examined: bytes of the log that were looked at"""

    data: bytes
    records: int
    lost: int
    examined: int


class PartitionRead:
    """at: the next lsn; end: of what was there when it began to read"""

    def __init__(self, name: str, at: int, decide: Decide, tail: FollowedLog, *, with_publishers: bool) -> None:
        self.name, self.at, self.end = name, at, at
        self.is_in_memory = False
        self._path = name.encode()
        self._decide, self._tail, self._with_publishers = decide, tail, with_publishers
        self._topics: dict[int, tuple[int, int] | None] = {}
        self._pieces: Iterator[Chunk | Gap] | None = None
        self._chunk: Chunk | None = None
        self._row = 0
        self._publishers = NO_PUBLISHERS

    def forget_topics(self) -> None:
        """Rules have changed."""
        self._topics.clear()

    def begin(self, view: PartitionView) -> int:
        """Take a newer view, if all of the one before is read; returns how many records were removed behind `at`."""
        lost = 0
        if self._pieces is None and self._chunk is None:
            lost = max(0, view.first_lsn - self.at)
            self.at = max(self.at, view.first_lsn)
            self.end = max(self.at, view.end_lsn)
            kept = None
            if self.at < self.end and not self._with_publishers:  # their names are read from the files
                kept = self._tail.maybe_kept(self.name, self.at, self.end)
            self.is_in_memory = self.at >= self.end or kept is not None
            if self.at < self.end:
                self._pieces = self._read(view) if kept is None else iter(kept)
        return lost

    def _read(self, view: PartitionView) -> Iterator[Chunk | Gap]:
        for first, last in view.spans_of(self.at, self.end, self._wants):
            if self._with_publishers:
                self._publishers = view.publishers(first, last)
            yield from view.chunks(first, last)

    def _wants(self, topic: bytes) -> bool:
        return self._decide(topic.decode(errors="replace"), self.name) is not None

    def fill(self, buffer: bytearray, bytes_max: int, examined_max: int, now_us: int) -> Filled:
        """Read on. raises: OSError"""
        parts: list[bytes] = []
        size = records = lost = examined = 0
        while size < bytes_max and examined < examined_max:
            if self._chunk is None:
                found = next(self._pieces, None) if self._pieces is not None else None
                if found is None:
                    self._pieces, self.at = None, max(self.at, self.end)
                    break
                if isinstance(found, Gap):
                    lost += found.next_lsn - found.base_lsn
                    self.at = found.next_lsn
                    continue
                self._chunk, self._row = found, 0
            chunk = self._chunk
            before = self._row
            written, count, self._row, need = put_records(
                chunk, before, self._topics, self._path, self._publishers, now_us, buffer, bytes_max - size
            )
            examined += (self._row - before) * (len(chunk.frames) // max(1, chunk.count) + 32)
            if written:
                parts.append(bytes(memoryview(buffer)[:written]))
                size += written
                records += count
            self.at = chunk.base_lsn + self._row
            if self._row >= chunk.count:
                self._chunk = None
            elif need > len(buffer) and not written:
                buffer.extend(bytes(need - len(buffer)))
            elif not need and size < bytes_max:
                self._learn_topic(chunk)
            elif written and need:
                continue  # what was written has been taken out of the buffer
        return Filled(b"".join(parts), records, lost, examined)

    def _learn_topic(self, chunk: Chunk) -> None:
        """Decide the topic of the next row."""
        words = memoryview(chunk.rows).cast("B").cast("I")
        topic_id = words[self._row * ROW_WORDS]
        topic = topic_at(chunk.frames, words[self._row * ROW_WORDS + FRAME_WORD]).decode(errors="replace")
        if len(self._topics) >= TOPICS_MAX:
            self._topics.clear()
        self._topics[topic_id] = self._decide(topic, self.name)
