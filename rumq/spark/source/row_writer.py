"""Format "rumq" of Spark, writing: each row is published to a broker. docs/guides/spark.md, "Publish"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from rumq.sink.sink_connection import SinkPartition, publish_all
from rumq.sink.sink_options import COLUMNS, SinkOptions
from rumq.spark.source.worker_setup import set_up_worker
from rumq.table.errors import BadColumn, BadOption
from rumq.table.options import near


@dataclass
class WrittenRows(WriterCommitMessage):
    """rows: acknowledged by the broker, of one task"""

    rows: int


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """raises: BadColumn, BadOption"""
    for field in schema.fields:
        if field.name not in COLUMNS:
            raise BadColumn(
                field.name,
                f"no such column; {near(field.name, {n: n for n in COLUMNS})} Select what to publish",
            )
        if field.dataType.simpleString() not in COLUMNS[field.name]:
            raise BadColumn(field.name, f"expected {' or '.join(COLUMNS[field.name])}")
    if "topic" not in schema.names and options.topic is None:
        raise BadOption("topic", "", "a topic, or a column topic")
    if options.once and "qos" in schema.names:
        raise BadColumn("qos", "leave it out: once = true publishes with QoS 2")


class RowWriter:
    """Writes the rows of one task. run_id: identifies a batch write, for all attempts at its tasks"""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_schema(schema, options)
        self._options = options
        self._run_id = uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:
        set_up_worker()
        context = TaskContext.get()
        assert context is not None, "Spark calls this in a task"
        return WrittenRows(publish_all(iterator, self._options, self.sink_partition(context)))

    def sink_partition(self, context: TaskContext) -> SinkPartition:
        """Query and batch of a stream, also for writes in its foreachBatch."""
        query = context.getLocalProperty("sql.streaming.queryId") or self._run_id
        batch = context.getLocalProperty("streaming.sql.batchId") or "0"
        return SinkPartition(query, int(batch), context.partitionId())


class RumqWriter(RowWriter, DataSourceArrowWriter):
    """Writer of a batch query."""

    def sink_partition(self, context: TaskContext) -> SinkPartition:
        """A repeated write is a new one, and one foreachBatch may have two."""
        if not self._options.once:
            return super().sink_partition(context)
        return SinkPartition(self._run_id, 0, context.partitionId(), self._options.session_seconds)


class RumqStreamWriter(RowWriter, DataSourceStreamArrowWriter):
    """Writer of a stream. Published messages cannot be withdrawn, so commit and abort do nothing."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass
