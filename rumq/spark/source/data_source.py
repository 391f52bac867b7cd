"""Format "rumq" of Spark: the log in parallel by lsn range, as Arrow batches. docs/spark.md.

Everything here is called by Spark: planning in a process of the driver, `read` in one of a worker. What is read is said
by `rumq.table.plan`, the batches are made by `rumq.table.scan`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from rumq.spark.sink.sink_options import parse_sink_options
from rumq.spark.source.pushed_filters import Pushed, push
from rumq.spark.source.schema import columns_of, schema_of
from rumq.spark.source.topic_predicates import topic_ranges
from rumq.spark.source.worker_setup import settle
from rumq.table.errors import BadOption, WrongWorker
from rumq.table.lake_fallback import LakeFallback
from rumq.table.options import Options, parse
from rumq.table.partition_ranges import lakes_of, maybe_view
from rumq.table.plan import Span, cut, spans
from rumq.table.scan import scan, wanting
from rumq.version import VERSION


def here() -> str:
    """This Python and its rumq, as a worker's are held against the driver's."""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"Python {version} with rumq {VERSION} ({sys.executable})"


@dataclass
class Range(InputPartition):
    """Records start..end of one partition. lake: who has what the log has not, ""; driver: who planned it"""

    partition: str
    start: int
    end: int
    lake: str
    rumq_version: str
    driver: str


def ranges(found: list[Span], options: Options) -> list[Range]:
    """Tasks. Spark turns an empty list into one that is None, so there is always one."""
    cores = len(os.sched_getaffinity(0))
    tasks = cut(found, options.partitions_min, options.records_max, cores)
    of = lakes_of(options) if tasks and options.where is None else {}
    return [Range(*task, of.get(task.partition, ""), VERSION, here()) for task in tasks or [Span("", 0, 0)]]


class RumqDataSource(DataSource):
    """A row a message."""

    @classmethod
    def name(cls) -> str:
        return "rumq"

    def schema(self) -> StructType:
        return schema_of(self._parsed(streaming=None))

    def reader(self, schema: StructType) -> RumqReader:
        return RumqReader(self._parsed(), schema)

    def streamReader(self, schema: StructType) -> Any:
        from rumq.spark.source.stream_reader import RumqStreamReader

        return RumqStreamReader(self._parsed(streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from rumq.spark.sink.row_writer import RumqWriter

        if overwrite:
            raise BadOption("mode", "overwrite", "append: what is in a log stays")
        return RumqWriter(parse_sink_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        from rumq.spark.sink.row_writer import RumqStreamWriter

        return RumqStreamWriter(parse_sink_options(self.options), schema)

    def _parsed(self, *, streaming: bool | None = False) -> Options:
        return parse(self.options, now_us=time.time_ns() // 1000, streaming=streaming)


class RangeReader:
    """Reads ranges in a worker, of a batch or of a stream."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._columns = columns_of(options, schema)
        self._schema = schema
        self._pushed = Pushed()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield record batches of a range, cut by rows and bytes."""
        assert isinstance(partition, Range)
        if partition.rumq_version != VERSION:
            raise WrongWorker(here(), partition.driver)
        if partition.start >= partition.end:
            return
        settle()
        options = self._options
        name, start, end = partition.partition, partition.start, partition.end
        schema = to_arrow_schema(self._schema, timezone="UTC")
        if options.where is not None:
            from rumq.spark.source.flight_log import remote_batches

            yield from remote_batches(options, name, start, end, self._schema.names, schema, self._pushed)
            return
        pushed = self._pushed
        wants, filling = pushed.wants(wanting(options.filters, options.pattern)), None
        if partition.lake:
            ranges = pushed.ranges(topic_ranges(options.filters))
            filling = LakeFallback(partition.lake, name, self._columns, schema, wants, ranges, pushed.times)
        view = maybe_view(options.path, name)
        if view is None and filling is None:
            raise BadOption("path", options.path, f"one that every worker can read: {name} is not there")
        yield from scan(
            view, start, end, self._columns, schema, wants=wants, fail_on_data_loss=options.fail_on_data_loss,
            filling=filling, times=pushed.times,
        )  # fmt: skip


class Pushing:
    """`pushFilters` of a reader, as Spark calls it.

    Spark refuses to run a reader that has a method of this name of its own where filters are not to be pushed down
    (spark.sql.python.filterPushdown.enabled, false by default): it looks at `__func__`. Such sessions read on
    without."""

    def __init__(self, reader: RumqReader) -> None:
        self._reader = reader
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Any]) -> list[Any]:
        return self._reader.take_over(filters)


class RumqReader(RangeReader, DataSourceReader):
    """Of a batch query. What it reads is settled once: however often Spark asks, the ranges are the same."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self._spans: list[Span] | None = None

    @property
    def pushFilters(self) -> Pushing:
        return Pushing(self)

    def take_over(self, filters: list[Any]) -> list[Any]:
        """Apply what can be applied here; what is left is for Spark."""
        self._pushed, left = push(filters)
        return left

    def partitions(self) -> list[Range]:
        """Cut what is asked for into ranges, one a task."""
        if self._spans is None:
            self._spans = spans(self._options, self._pushed)
        return ranges(self._spans, self._options)
