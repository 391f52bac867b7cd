"""Format "rumq" of Spark: the log in parallel by lsn range, as Arrow batches. docs/guides/spark.md.

Spark calls the planning methods in a process of the driver, and `read` in a worker."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from rumq.records.log_partitions import readable_partitions
from rumq.sink.sink_options import parse_sink_options
from rumq.spark.source.filter_pushdown import push
from rumq.spark.source.full_read import full_read_notice
from rumq.spark.source.ranges import Range, RangeReader, ranges
from rumq.spark.source.schema import schema_of
from rumq.table.errors import BadOption
from rumq.table.options import TableOptions, parse
from rumq.table.plan import LsnSpan, spans

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
        Filter,
    )


class RumqDataSource(DataSource):
    """One row per message. parallelism: tasks of a batch, 0 for the cores of the planner's machine"""

    parallelism = 0

    @classmethod
    def name(cls) -> str:
        return "rumq"

    def schema(self) -> StructType:
        return schema_of(self._parsed(streaming=None))

    def reader(self, schema: StructType) -> RumqReader:
        return RumqReader(self._parsed(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from rumq.spark.source.stream_reader import RumqStreamReader

        return RumqStreamReader(self._parsed(streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from rumq.spark.source.row_writer import RumqWriter

        if overwrite:
            raise BadOption("mode", "overwrite", "append: records of a log are permanent")
        return RumqWriter(parse_sink_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from rumq.spark.source.row_writer import RumqStreamWriter

        return RumqStreamWriter(parse_sink_options(self.options), schema)

    def _parsed(self, *, streaming: bool | None = False) -> TableOptions:
        found = parse(self.options, now_us=time.time_ns() // 1000, streaming=streaming)
        return replace(found, cores=self.parallelism)


def with_parallelism(cores: int) -> type[RumqDataSource]:
    """The source of a session whose cluster has so many cores. Spark plans in a process of its own, which gets this
    class by value, and knows nothing else of the session."""
    return type("RumqDataSourceOfSession", (RumqDataSource,), {"parallelism": cores})


class FilterPushdown:
    """`pushFilters` of a reader, as Spark calls it.

    Without push-down (spark.sql.python.filterPushdown.enabled, false by default) Spark refuses a reader that defines a
    method of this name, which it detects by `__func__`. An object with the inherited `__func__` avoids that."""

    def __init__(self, reader: RumqReader) -> None:
        self._reader = reader
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        return self._reader.push_filters(filters)


class RumqReader(RangeReader, DataSourceReader):
    """Reader of a batch query. The ranges are planned once, on Spark's first call."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._spans: list[LsnSpan] | None = None

    @property
    def pushFilters(self) -> FilterPushdown:
        return FilterPushdown(self)

    def push_filters(self, filters: list[Filter]) -> list[Filter]:
        """Accept the filters that the source can apply; return the others to Spark."""
        self._pushed_filters, left = push(filters)
        return left

    def partitions(self) -> list[Range]:
        """Split the query into ranges, one per task."""
        if self._spans is None:
            self._spans = spans(self._options, readable_partitions(self._options), self._pushed_filters)
            if notice := full_read_notice(self._spans, self._pushed_filters, self._options.filters):
                print(notice, file=sys.stderr, flush=True)
        return ranges(self._spans, self._options)
