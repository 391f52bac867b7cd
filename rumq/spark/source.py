"""Format "rumq" of Spark: batch reads of the log, in parallel by lsn range, as Arrow batches. docs/spark.md.

Everything here is called by Spark: planning on the driver, `read` in a worker process. The log is read through
`commitlog.reader`; its columns are made in `rumq.spark.columns`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from commitlog import Gap, RealFiles
from commitlog.reader import LogReader, PartitionView
from rumq.mqtt.topics import matches
from rumq.spark.options import BadOption, Options, parse

SCHEMA = (
    "topic string, topic_offset bigint, lsn bigint, partition string, ts timestamp, payload binary, qos tinyint, "
    "retain boolean, client_id string, properties array<struct<key: string, value: string>>, content_type string, "
    "response_topic string, correlation_data binary, message_expiry bigint, payload_format tinyint"
)
BATCH_ROWS_MAX = 65_536
BATCH_BYTES_MAX = 8 << 20


class DataLoss(Exception):
    """Records that were asked for cannot be read. failOnDataLoss=false reads on without them."""

    def __init__(self, partition: str, first: int, next_lsn: int, why: str) -> None:
        super().__init__(partition, first, next_lsn, why)
        self.partition, self.first, self.next_lsn, self.why = partition, first, next_lsn, why

    def __str__(self) -> str:
        return (
            f"rumq: records {self.first} to {self.next_lsn - 1} of {self.partition} cannot be read: {self.why}. "
            "Keep records longer, start later, or read on without them: .option('failOnDataLoss', 'false')"
        )


@dataclass
class Range(InputPartition):
    """Records start..end of one partition of the log."""

    partition: str
    start: int
    end: int


class RumqDataSource(DataSource):
    """A row a message."""

    @classmethod
    def name(cls) -> str:
        return "rumq"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> RumqReader:
        return RumqReader(parse(self.options), schema)


class RumqReader(DataSourceReader):
    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def _views(self) -> list[PartitionView]:
        try:
            views = LogReader(RealFiles(), self._options.path).partitions()
        except OSError as fault:
            raise BadOption(
                "path", self._options.path, f"a data directory of rumq ({fault.strerror or fault})"
            ) from None
        if self._options.stream is None:
            return views
        chosen = [view for view in views if view.stream == self._options.stream]
        if not chosen:
            names = ", ".join(sorted({view.stream for view in views})) or "none is there yet"
            raise BadOption("stream", self._options.stream, f"one of the streams: {names}")
        return chosen

    def partitions(self) -> list[Range]:
        """Cut what is asked for into ranges, one a task."""
        options, found = self._options, []
        views = self._views()
        for option, said in (("startingOffsets", options.starts), ("endingOffsets", options.ends)):
            if isinstance(said, dict) and (unknown := set(said) - {view.name for view in views}):
                raise BadOption(
                    option, ", ".join(sorted(unknown)), f"partitions of {[v.name for v in views]}"
                )
        for view in views:
            start, end = self._bounds(view)
            if start < view.first_lsn:
                if options.fail_on_data_loss and isinstance(options.starts, dict):
                    raise DataLoss(view.name, start, view.first_lsn, "retention has taken them")
                start = view.first_lsn
            while start < end:
                stop = min(end, start + options.records_max)
                found.append(Range(view.name, start, stop))
                start = stop
        # Spark turns an empty list into one partition that is None.
        return found or [Range("", 0, 0)]

    def _bounds(self, view: PartitionView) -> tuple[int, int]:
        options = self._options
        start, end = view.first_lsn, view.end_lsn
        if options.start_us is not None:
            start = view.find_time(options.start_us)
        elif isinstance(options.starts, dict):
            start = options.starts.get(view.name, start)
        elif options.starts == "latest":
            start = end
        if options.end_us is not None:
            end = min(end, view.find_time(options.end_us))
        elif isinstance(options.ends, dict):
            end = min(end, options.ends.get(view.name, end))
        elif options.ends == "earliest":
            end = view.first_lsn
        return start, end

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield record batches of a range, cut by rows and bytes."""
        assert isinstance(partition, Range)
        if partition.start >= partition.end:
            return
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        from rumq.spark.columns import Columns

        settle()
        schema = to_arrow_schema(self._schema, timezone="UTC")
        view = next(v for v in self._views() if v.name == partition.partition)
        names = view.names()
        wanted = self._wanted(names[0])
        parts: list[Any] = []
        rows = size = 0
        for chunk in view.chunks(partition.start, partition.end):
            if isinstance(chunk, Gap):
                if self._options.fail_on_data_loss:
                    raise DataLoss(view.name, chunk.base_lsn, chunk.next_lsn, chunk.why)
                continue
            columns = Columns(chunk, view.name, names, keep(chunk, wanted))
            if not len(columns):
                continue
            arrays = [columns.array(name).cast(schema.field(name).type) for name in schema.names]
            parts.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
            rows += len(columns)
            size += len(chunk.frames)
            if rows >= BATCH_ROWS_MAX or size >= BATCH_BYTES_MAX:
                yield from together(parts, schema)
                parts, rows, size = [], 0, 0
        yield from together(parts, schema)

    def _wanted(self, topics: dict[int, bytes]) -> set[int] | None:
        """The topic ids that the filters want; None: all. Each topic is matched once."""
        filters = self._options.filters
        if not filters or "#" in filters:
            return None
        return {number for number, name in topics.items() if any(matches(f, name.decode()) for f in filters)}


def keep(chunk: Any, wanted: set[int] | None) -> Any | None:
    """Which rows of a chunk to keep; None: all."""
    if wanted is None:
        return None
    import numpy as np

    from rumq.spark.columns import ROW

    return np.isin(np.frombuffer(chunk.rows, ROW)["topic_id"], np.fromiter(wanted, np.uint32, len(wanted)))


def together(parts: list[Any], schema: Any) -> Iterator[Any]:
    """Small batches as few larger ones."""
    if parts:
        import pyarrow as pa

        yield from (
            pa.Table.from_batches(parts, schema).combine_chunks().to_batches(max_chunksize=BATCH_ROWS_MAX)
        )


_settled = False


def settle() -> None:
    """Take what is loaded out of the collector's sight: Spark runs a full collection after every task."""
    global _settled
    if not _settled:
        _settled = True
        gc.freeze()
