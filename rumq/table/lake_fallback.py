"""Records that the log no longer has, read from the lake as batches of format "rumq"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from commitlog import Gap
from rumq.lake.lake_reader import MISSING, Lake, TopicRange, cut, lake_at, lost_within
from rumq.lake.lake_reader import read as read_lake
from rumq.lake.manifest import LakePartition
from rumq.table.arrow.lake_columns import array_of, needed

BATCH_ROWS_MAX = 65_536
BATCH_BYTES_MAX = 8 << 20  # of frames; larger ones make Spark slower, much larger ones end its JVM


class LakeFallback(NamedTuple):
    """Reads the wanted records of a partition from its lake.

    location: of the lake; columns, schema, wants, times: as of `scan`; ranges: bounds of the wanted topics"""

    location: str
    partition: str
    columns: dict[str, str]
    schema: pa.Schema
    wants: Callable[[str], bool] | None
    ranges: Sequence[TopicRange] | None
    times: tuple[int, int] | None = None

    def read(self, gap: Gap) -> Iterator[tuple[pa.RecordBatch, int] | Gap]:
        """The records of a gap in order, as `scan_with_positions` yields them, and the lake's own gaps.

        raises: LakeError, OSError"""
        lake = lake_at(self.location)
        if any(lost.why == MISSING for lost in lost_within(self._partition_of(lake), gap.base_lsn, gap.next_lsn)):
            # Exported since the manifest was read, or never.
            lake = lake_at(self.location, fresh=True)
        for lost in lost_within(self._partition_of(lake), gap.base_lsn, gap.next_lsn):
            why = f"{gap.why}, and {lost.why}" if lost.why == MISSING else lost.why
            yield Gap(lost.base_lsn, lost.next_lsn, why)
        names = [needed(column) for column in self.columns.values()]
        names += ["payload", "lsn", *([] if self.times is None else ["ts"])]
        for table in read_lake(
            lake, self.partition, gap.base_lsn, gap.next_lsn, list(dict.fromkeys(names)),
            wants=self.wants, ranges=self.ranges,
        ):  # fmt: skip
            yield from self._batches(table if self.times is None else within_times(table, self.times))

    def _partition_of(self, lake: Lake) -> LakePartition:
        return lake.manifest.partition(self.partition)

    def _batches(self, table: pa.Table) -> Iterator[tuple[pa.RecordBatch, int]]:
        sizes = np.zeros(len(table), np.int64)
        for column in table.columns:
            if column.type in (pa.string(), pa.binary()):
                sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy()
        sizes = np.cumsum(sizes)
        for first, stop in cut(sizes, BATCH_ROWS_MAX, BATCH_BYTES_MAX):
            part = table.slice(first, stop - first)
            arrays = [
                array_of(part, self.columns[name]).cast(self.schema.field(name).type) for name in self.schema.names
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema), part["lsn"][-1].as_py() + 1


def within_times(table: pa.Table, times: tuple[int, int]) -> pa.Table:
    """The rows of these times."""
    ts = table["ts"].cast(pa.int64())
    return table.filter(pc.and_(pc.greater_equal(ts, times[0]), pc.less(ts, times[1])))
