"""`rumq.read`: the records of a log as Arrow batches, and as a table of pandas, Polars or DuckDB. docs/guides/read.md.

The ends of a read are fixed when it is made: each iteration gives the same records, each once."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from rumq.flight.schema import NAMES, makers_of, schema_of
from rumq.records.log_partitions import readable_partitions
from rumq.records.log_source import Bound, SourceOptions, by_argument, columns_of, options_of
from rumq.records.range_batches import range_batches
from rumq.table.errors import BadOption, UnknownTopic
from rumq.table.options import TableOptions
from rumq.table.partition_ranges import PartitionRange, ReadablePartition, lakes_by_partition
from rumq.table.plan import LsnSpan, spans

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

COMPARED_MAX = 10_000  # topics that a misspelt one is compared with


class Records:
    """Records start..end of each partition, one partition after the other, each in the order of its log.

    `for batch in records` reads batches of up to 65,536 rows and 8 MiB, and holds a few of them. Everything that takes
    Arrow's stream interface takes this object: `pyarrow.table(records)`, `polars.DataFrame(records)`, and
    `duckdb.sql("select ... from records")`. Each of them reads the records again.
    """

    def __init__(self, options: TableOptions, planned: Sequence[LsnSpan], columns: tuple[str, ...]) -> None:
        """planned: at most one span of a partition; columns: of `rumq.flight.schema.NAMES`"""
        self._options, self._spans = options, tuple(planned)
        self._makers = makers_of(columns, "array")
        self._lakes = lakes_by_partition(options) if options.flight_location is None else {}
        self.schema: pa.Schema = schema_of(columns, "array")

    @property
    def offsets(self) -> dict[str, tuple[int, int]]:
        """Partition -> first lsn and end (exclusive) of what is read; partitions without such records are left out."""
        return {span.partition: (span.start, span.end) for span in self._spans}

    def __repr__(self) -> str:
        count = sum(span.end - span.start for span in self._spans)
        names = ", ".join(self.schema.names)
        return f"rumq.Records: {names} of at most {count:,} records in {len(self._spans)} partitions"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """raises: DataLoss, and as `rumq.records.range_batches.range_batches`"""
        for span in self._spans:
            lake = self._lakes.get(span.partition, "")
            yield from range_batches(self._options, span, lake, self._makers, self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's stream interface: what other libraries call."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """For what wants pyarrow's own reader; it reads the records once."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def to_arrow(self) -> pa.Table:
        return pa.Table.from_batches(list(self), self.schema)

    def to_pandas(self, **more: Any) -> pd.DataFrame:
        """more: for `pyarrow.Table.to_pandas`"""
        return self.to_arrow().to_pandas(**more)

    def to_polars(self) -> pl.DataFrame:
        import polars

        found = polars.from_arrow(self.to_arrow())
        assert isinstance(found, polars.DataFrame)
        return found

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A relation, which reads the records at each query, and no row before.

        connection: the default one of the module; another one for a database of its own"""
        import duckdb

        return (duckdb if connection is None else connection).from_arrow(self)


def read(
    source: str | os.PathLike[str], topics: str | Sequence[str] | None = None, start: Bound | None = None,
    end: Bound | None = None, columns: Sequence[str] | None = None, **more: Unpack[SourceOptions],
) -> Records:  # fmt: skip
    """The records of a log, from log and lake together.

    source: a data directory, or of Flight servers grpc://host:8815 or grpc+tls://host:8815
    topics: MQTT topic filters, as a list or separated by commas; None for all
    start, end: a time (a datetime, "2026-11-01", "-10m"), "earliest", "latest", "tail:1000" (the last of each
      partition), or lsns by partition; end is exclusive
    columns: names, in this order; None for all
    more: see `SourceOptions`
    raises: BadOption, UnknownOption, NoColumn, UnknownTopic, DataLoss; of a server Away and NotAllowed
    """
    names = columns_of(columns, NAMES)
    options = options_of(source, topics, start, end, dict(more), now_us=time.time_ns() // 1000)
    try:
        found = readable_partitions(options)
        check_topics(options.filters, found)
        return Records(options, spans(options, found), names)
    except BadOption as fault:
        raise by_argument(fault) from None


def check_topics(filters: Sequence[str], found: Sequence[ReadablePartition]) -> None:
    """Refuse a topic without wildcards that was never published to; a server does not tell which topics it has.

    cost: the names of all topics, only if there is such a filter. raises: UnknownTopic"""
    exact = [each for each in filters if not {"+", "#"} & set(each.split("/"))]
    if not exact or not all(isinstance(each, PartitionRange) and each.view is not None for each in found):
        return
    known = {
        name
        for each in found
        if isinstance(each, PartitionRange) and each.view
        for name in each.view.names()[0].values()
    }
    for topic in exact:
        if topic.encode() not in known:
            raise UnknownTopic(topic, hint_for(topic, known))


def hint_for(topic: str, known: set[bytes]) -> str:
    if not known:
        return "the log has no topics yet"
    some = [name.decode(errors="replace") for _, name in zip(range(COMPARED_MAX), known, strict=False)]
    near = difflib.get_close_matches(topic, some, 1, 0.6)
    like = f"did you mean {near[0]!r}? A" if near else "a"
    return f"{like} filter with + or # may match nothing, and is then an empty table"
