"""An index in memory, and its collection during a pass over a segment. docs/reference/log-format.md, "Index".

A lone message adds one row: rows of small chunks that follow on each other share one column. Knows no file."""
# compiled: hot

from __future__ import annotations

from array import array
from collections.abc import Mapping

from commitlog.chunk import Buffer
from commitlog.format.chunk_position import ChunkPosition
from commitlog.kernels import rows as kernel
from commitlog.kernels import topics as topics_kernel
from commitlog.names.topic_table import PackedTopicTable, TopicRows

NUMBERS_MAX = 1 << 26  # topics and publishers are numbered densely: higher numbers were never assigned
FEW = 256  # rows of a small chunk, as the kernel takes them
FEW_MAX = 1024  # rows of small chunks in one column; it ends behind the chunk that reaches that


class Index:
    """places: every chunk; topics: id -> its rows; rows: their numbers from the base lsn, topic by topic.

    names: of the topics; known: the list of all names, if the builder has it: then `names` is empty"""

    __slots__ = ("known", "names", "places", "publishers", "rows", "topics")

    def __init__(self, known: list[bytes] | None = None) -> None:
        self.places: list[ChunkPosition] = []
        self.topics: Mapping[int, TopicRows] = PackedTopicTable()
        self.names: dict[int, bytes] = {}
        self.known = known
        self.publishers: dict[int, bytes] = {}
        self.rows: array[int] = array("I")


class IndexBuilder:
    """Collects an index during a pass over a segment, by its writer or by a reader."""

    __slots__ = ("_columns", "_few", "_few_count", "_few_row", "_first", "_following", "_seen", "index")

    def __init__(self, known: list[bytes] | None = None) -> None:
        """known: as of `Index`"""
        self.index = Index(known)
        self._columns: list[tuple[int, bytes]] = []
        self._seen = bytearray(1024)
        self._first: array[int] = array("Q", bytes(8 * 1024))
        self._following: array[int] = array("Q", bytes(8 * 1024))
        # The column of the chunks of few rows that came last, one behind the other.
        self._few = bytearray(4 * (FEW_MAX + FEW))
        self._few_row = self._few_count = 0

    def add(
        self, place: ChunkPosition, base_lsn: int, rows: Buffer | None, topics: list[tuple[int, int, bytes]],
        publishers: list[tuple[int, bytes]],
    ) -> None:  # fmt: skip
        """Add a chunk. base_lsn: of its segment; rows: None when they cannot be read."""
        self.index.places.append(place)
        if topics or publishers:
            self.name(topics, publishers)
        if rows is None:
            return
        row = place.base_lsn - base_lsn
        if row != self._few_row + self._few_count or self._few_count >= FEW_MAX:
            self._end_few(row)
        count = kernel.index_few(rows, self._seen, self._first, self._following, self._few, self._few_count)
        if count >= 0:
            self._few_count += count
            return
        self._end_few(row)
        column, highest = kernel.topic_column(rows)
        if highest >= NUMBERS_MAX:
            return
        if highest >= len(self._seen):
            more = highest + 1024 - len(self._seen)
            self._seen.extend(bytes(more))
            self._first.frombytes(bytes(8 * more))
            self._following.frombytes(bytes(8 * more))
        topics_kernel.first_offsets(rows, self._seen, self._first)
        kernel.follow(rows, self._following)
        self._columns.append((row, column))

    def _end_few(self, row: int) -> None:
        """Rows that come now go to another column. row: of the first one"""
        if self._few_count:
            self._columns.append((self._few_row, bytes(self._few[: 4 * self._few_count])))
        self._few_row, self._few_count = row, 0

    def name(self, topics: list[tuple[int, int, bytes]], publishers: list[tuple[int, bytes]]) -> None:
        for number, _, name in topics:
            if number < NUMBERS_MAX:
                self.index.names[number] = name
        for number, name in publishers:
            if number < NUMBERS_MAX:
                self.index.publishers[number] = name

    def finished(self) -> Index:
        """Sort the rows by topic: count, then place."""
        index = self.index
        self._end_few(0)
        counts = array("I", bytes(4 * len(self._seen)))
        for _, column in self._columns:
            kernel.count_topics(column, counts)
        starts = array("I", bytes(4 * len(counts)))
        index.topics = PackedTopicTable(topics_kernel.table(self._seen, counts, self._first, self._following, starts))
        index.rows = array("I", bytes(sum(len(column) for _, column in self._columns)))
        for first_row, column in self._columns:
            kernel.place_rows(column, first_row, starts, index.rows)
        return index
