"""Partition ranges: each is one Spark task, of a batch or of a stream.

The driver plans them, workers read them. docs/guides/spark.md, "Read"."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from rumq.records.range_batches import range_batches
from rumq.spark.source.schema import columns_of
from rumq.spark.source.worker_setup import set_up_worker
from rumq.table.errors import WrongWorker
from rumq.table.options import TableOptions
from rumq.table.partition_ranges import lakes_by_partition
from rumq.table.plan import LsnSpan, cut
from rumq.table.pushed_filters import PushedFilters
from rumq.version import VERSION


def python_version() -> str:
    """Versions of Python and rumq, which must be equal on driver and workers."""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"Python {version} with rumq {VERSION} ({sys.executable})"


@dataclass
class Range(InputPartition):
    """Records start..end of one partition. lake: location of its lake or ""; driver: the planner's `python_version`"""

    partition: str
    start: int
    end: int
    lake: str
    rumq_version: str
    driver: str


def ranges(found: list[LsnSpan], options: TableOptions) -> list[Range]:
    """At least one task, because Spark turns an empty list into a None task."""
    cores = options.cores or len(os.sched_getaffinity(0))
    tasks = cut(found, options.partitions_min, options.records_max, cores)
    of = lakes_by_partition(options) if tasks and options.flight_location is None else {}
    return [
        Range(*task, of.get(task.partition, ""), VERSION, python_version()) for task in tasks or [LsnSpan("", 0, 0)]
    ]


class RangeReader:
    """Reads ranges in a worker, of a batch or of a stream."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        self._options = options
        self._columns = columns_of(options, schema)
        self._schema = schema
        self._pushed_filters = PushedFilters()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield record batches of a range, limited by rows and bytes."""
        assert isinstance(partition, Range)
        if partition.rumq_version != VERSION:
            raise WrongWorker(python_version(), partition.driver)
        if partition.start >= partition.end:
            return
        set_up_worker()
        span = LsnSpan(partition.partition, partition.start, partition.end)
        schema = to_arrow_schema(self._schema, timezone="UTC")
        yield from range_batches(self._options, span, partition.lake, self._columns, schema, self._pushed_filters)
