"""Format "rumq" of Spark, writing: each row is published to a broker, at least once. docs/spark.md, "Publishing"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import trio
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from rumq.spark.errors import BadColumn, BadOption
from rumq.spark.options import near
from rumq.spark.publish import COLUMNS, Target, publish_all
from rumq.spark.settle import settle


@dataclass
class Published(WriterCommitMessage):
    """rows: acknowledged by the broker, of one task"""

    rows: int


def check_schema(schema: StructType, target: Target) -> None:
    """raises: BadColumn, BadOption"""
    fields: Any = schema
    for field in fields:
        if field.name not in COLUMNS:
            raise BadColumn(
                field.name, f"{near(field.name, {n: n for n in COLUMNS})}; select what to publish"
            )
        if field.dataType.simpleString() not in COLUMNS[field.name]:
            raise BadColumn(field.name, " or ".join(COLUMNS[field.name]))
    if "topic" not in schema.names and target.topic is None:
        raise BadOption("topic", "", "a topic, or a column topic")


class Publishing:
    """Writes the rows of one task."""

    def __init__(self, target: Target, schema: StructType) -> None:
        check_schema(schema, target)
        self._target = target

    def write(self, iterator: Iterator[Any]) -> Published:
        settle()
        context = TaskContext.get()
        origin = origin_of(context) if self._target.origin and context is not None else None
        return Published(trio.run(publish_all, iterator, self._target, origin))


def origin_of(context: TaskContext) -> Callable[[int], str]:
    """What makes a row of a query unique: query/batch/partition/row, the same when a task or a batch is done again."""
    query = context.getLocalProperty("sql.streaming.queryId") or "batch"
    batch = context.getLocalProperty("streaming.sql.batchId") or str(context.stageId())
    before = f"{query}/{batch}/{context.partitionId()}/"
    return lambda row: f"{before}{row}"


class RumqWriter(Publishing, DataSourceArrowWriter):
    """Of a batch."""


class RumqStreamWriter(Publishing, DataSourceStreamArrowWriter):
    """Of a stream. A message that is published cannot be taken back, so there is nothing to commit or abort."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass
