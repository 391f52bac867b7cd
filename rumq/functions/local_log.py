"""The committed log of a data directory, as a function reads it: its partitions, their ends, ranges as batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rumq.flight.schema import NAMES, makers_of
from rumq.functions.function_rows import SCHEMA
from rumq.records.log_partitions import readable_partitions
from rumq.records.log_source import options_of
from rumq.records.range_batches import range_batches
from rumq.table.partition_ranges import ReadablePartition
from rumq.table.plan import LsnSpan


class LocalLog:
    """data: the directory; filters: of the records that are wanted"""

    def __init__(self, data: str, filters: tuple[str, ...]) -> None:
        """raises: BadOption"""
        # What retention has removed is reported by who asks; records that are damaged end nothing.
        self._options = options_of(
            data, filters, "earliest", None, {"lake": "none", "fail_on_data_loss": False}, now_us=0
        )
        self._makers = makers_of(NAMES, "array")
        self._partitions: dict[str, ReadablePartition] = {}

    def look(self) -> list[str]:
        """Names of the partitions, as they are now. raises: BadOption"""
        self._partitions = {each.name: each for each in readable_partitions(self._options)}
        return list(self._partitions)

    def ends(self, partition: str) -> tuple[int, int]:
        """First lsn and end, as of the last look."""
        found = self._partitions[partition]
        return found.first_lsn, found.end_lsn

    def end_within(self, partition: str, start: int, end: int, bytes_max: int) -> int:
        return self._partitions[partition].end_within(start, end, bytes_max)

    def batches(self, partition: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        return range_batches(self._options, LsnSpan(partition, start, end), "", self._makers, SCHEMA)
