"""`rumq.spark.read`: log and lake as one table. Spark's own Parquet reader reads the lake, with pruning; format "rumq"
reads the rest. docs/guides/spark.md, "History".

`read` decides once which record comes from where."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructField, StructType

from rumq.lake.folder import Folder, absolute
from rumq.lake.lake_reader import files_within, lost_within, may_have
from rumq.lake.manifest import LakeFile
from rumq.records.log_source import Bound, bound, joined
from rumq.spark.source.schema import columns_of, schema_of
from rumq.spark.source.topic_predicates import mqtt_filter_to_predicate
from rumq.table.errors import DataLoss
from rumq.table.options import TableOptions, parse
from rumq.table.partition_ranges import NO_LAKE, PartitionRange, partition_ranges
from rumq.table.plan import LsnSpan, ending, starting
from rumq.table.topic_ranges import topic_ranges

GLOB = re.compile(r"([\\{}\[\]*?])")


class RecordSources(NamedTuple):
    """Sources of the records. whole: files that are read whole; clipped: files with the span that is read

    log: for format "rumq", each with at most one span per partition"""

    whole: list[str]
    clipped: list[tuple[str, LsnSpan]]
    log: list[list[LsnSpan]]


def read(
    spark: SparkSession, data_dir: str, topics: str | Sequence[str] | None = None, start: Bound | None = None,
    end: Bound | None = None, columns: Sequence[str] | None = None, *, lake: str = "", stream: str | None = None,
    fail_on_data_loss: bool = True,
) -> DataFrame:  # fmt: skip
    """A DataFrame of the records from `start` to `end` (exclusive), each once, in no order.

    topics: MQTT topic filters; start, end: as in startingOffsets, or a time as in startingTimestamp, or a datetime
    columns: names, in this order, None for all; lake: folder or URI, "" for the one in the log's export marker
    raises: BadOption, BadColumn, DataLoss
    """
    given = {"path": os.path.abspath(data_dir), **bound("starting", start), **bound("ending", end)}
    given |= {"lake": lake if lake in ("", NO_LAKE) else absolute(lake)}
    given |= {"subscribe": joined(topics)} if topics is not None else {}
    given |= {"stream": stream} if stream is not None else {}
    given |= {} if fail_on_data_loss else {"failOnDataLoss": "false"}
    options = parse(given, now_us=time.time_ns() // 1000)
    everything = schema_of(options)
    schema = StructType([field_of(everything, name) for name in columns or everything.names])
    columns_of(options, schema)
    split = record_sources(options, partition_ranges(options))
    frames = []
    if split.whole:
        frames.append(native(spark, split.whole, schema, everything, options))
    if split.clipped:
        condition = reduce(lambda a, b: a | b, (within(span) for _, span in split.clipped))
        paths = [path for path, _ in split.clipped]
        frames.append(native(spark, paths, schema, everything, options, condition))
    frames += [from_log(spark, spans, schema, given) for spans in split.log]
    return reduce(lambda a, b: a.union(b), frames) if frames else spark.createDataFrame([], schema)


def field_of(schema: StructType, name: str) -> StructField:
    # `columns_of` refuses an unknown one, and suggests the nearest name.
    return schema[name] if name in schema.names else StructField(name, StructType())


def record_sources(options: TableOptions, found: list[PartitionRange]) -> RecordSources:
    """raises: BadOption, DataLoss for records that neither log nor lake has any more"""
    starts, ends = starting(options, found), ending(options, found)
    ranges = topic_ranges(options.filters)
    split = RecordSources([], [], [[], []])
    for partition in found:
        name, start, end = partition.name, starts[partition.name], ends[partition.name]
        exported = partition.exported
        low, high = max(start, exported.first_lsn), min(end, exported.next_lsn)
        if partition.lake is None or low >= high:
            split.log[0].append(LsnSpan(name, start, end))
            continue
        for lost in lost_within(exported, low, high):
            if options.fail_on_data_loss:
                raise DataLoss(name, lost.base_lsn, lost.next_lsn, lost.why)
        split.log[0].append(LsnSpan(name, start, low))
        split.log[1].append(LsnSpan(name, high, end))
        for file in files_within(exported, low, high):
            if may_have(file, ranges):
                path = spark_path(partition.lake.folder, file)
                if low <= file.base_lsn and file.next_lsn <= high:
                    split.whole.append(path)
                else:
                    split.clipped.append((path, LsnSpan(name, low, high)))
    some = [[span for span in spans if span.start < span.end] for spans in split.log]
    return split._replace(log=[spans for spans in some if spans])


def spark_path(folder: Folder, file: LakeFile) -> str:
    """The path for Spark, with glob characters escaped and Hadoop's name of the scheme."""
    if folder.system is None:
        return "file:" + GLOB.sub(r"\\\1", os.path.abspath(folder.path(file.path)))
    return GLOB.sub(r"\\\1", re.sub("^s3://", "s3a://", folder.name(file.path)))


def within(span: LsnSpan) -> Column:
    lsn = f.col("lsn")
    return (f.col("partition") == span.partition) & (lsn >= span.start) & (lsn < span.end)


def native(
    spark: SparkSession,
    paths: list[str],
    schema: StructType,
    everything: StructType,
    options: TableOptions,
    more: Column | None = None,
) -> DataFrame:
    """Records of files of the lake. more: a condition on them"""
    names = dict.fromkeys([*schema.names, "topic", "partition", "lsn"])
    frame = spark.read.schema(StructType([everything[name] for name in names])).parquet(*paths)
    if (ranges := topic_ranges(options.filters)) is not None:
        # Spark pushes none of several filters down to Parquet if one has a regular expression.
        topic = f.col("topic")
        frame = frame.where(reduce(lambda a, b: a | b, ((topic >= low) & (topic < high) for low, high in ranges)))
    if options.filters:
        frame = frame.where(reduce(lambda a, b: a | b, map(mqtt_filter_to_predicate, options.filters)))
    if more is not None:
        frame = frame.where(more)
    return frame.select([as_in_log(field) for field in schema.fields])


def as_in_log(field: StructField) -> Column:
    """Without user properties the lake has null, and the log an empty list."""
    column = f.col(field.name)
    if isinstance(field.dataType, ArrayType):
        return f.coalesce(column, f.array().cast(field.dataType)).alias(field.name)
    return column


def from_log(spark: SparkSession, spans: list[LsnSpan], schema: StructType, given: dict[str, str]) -> DataFrame:
    """Records read by format "rumq", from log or lake, wherever they are at that time."""
    options = {name: given[name] for name in ("path", "subscribe", "lake", "failOnDataLoss") if given.get(name)}
    return (
        spark.read.format("rumq")
        .schema(schema)
        .options(**options)
        .option("assign", json.dumps([span.partition for span in spans]))
        .option("startingOffsets", json.dumps({span.partition: span.start for span in spans}))
        .option("endingOffsets", json.dumps({span.partition: span.end for span in spans}))
        .load()
    )
