"""Run a job from source to output, as a batch, or as streams with a checkpoint. docs/guides/spark.md, "Jobs"."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from rumq.errors import RumqError
from rumq.spark.job_kit.dataframe_columns import as_messages, of_topic, with_json, with_topic_parts
from rumq.spark.job_kit.feedback_loop import check_loop
from rumq.spark.jobs.output import Output
from rumq.spark.jobs.parse import dead_letters, dead_messages


def source(spark: SparkSession, args: Namespace) -> DataFrame:
    reads = spark.readStream if args.checkpoint else spark.read
    rows: DataFrame = reads.format("rumq").options(**args.source).load()
    return rows.where(of_topic(args.topics)) if args.topics else rows


def shaped(rows: DataFrame, args: Namespace) -> DataFrame:
    """With the columns of --topics and --json; without the rows that do not parse."""
    if args.topics:
        rows = with_topic_parts(rows, args.topics)
    if args.json:
        rows = with_json(rows, args.json, bad="_why").where("_why is null").drop("_why")
    return rows


def run(job: Any, spark: SparkSession, args: Namespace) -> str:
    """Run a job to its end, or until stopped; returns a message for the user. job: a module of rumq.spark.jobs"""
    rows = source(spark, args)
    if hasattr(job, "run"):
        return str(job.run(shaped(rows, args), args))
    work = [("", output, args.to, args.topic or output.topic) for output in job.outputs(shaped(rows, args), args)]
    if args.bad:
        letters = dead_letters(rows, args.json)
        if args.sink_options is None:
            work.append(("-dead", Output(letters), args.bad, ""))
        else:
            work.append(("-dead", Output(dead_messages(letters)), args.to, args.bad))
    if args.checkpoint and args.sink_options is not None and not args.other_broker:
        for _, _, _, topic in work:
            check_loop(topic, args.subscribe or "", args.topics or "")
    if args.checkpoint:
        spark.streams.resetTerminated()  # ignore queries that ended before
        queries = [stream(args, *one) for one in work]
        while any(query.isActive for query in queries):
            # A query that fails ends the others, too.
            spark.streams.awaitAnyTermination()
            spark.streams.resetTerminated()
        for query in queries:
            if fault := query.exception():
                raise fault
        return ""
    for _, output, to, topic in work:
        write(output, to, topic, args)
    return ""


def write(output: Output, to: str | None, topic: str, args: Namespace, mode: str = "errorifexists") -> None:
    """Write a batch."""
    if to is None:
        for row in output.frame.select(f.to_json(f.struct(*printable(output.frame)))).toLocalIterator():
            print(row[0])
        sys.stdout.flush()
    elif args.sink_options is not None:
        messages(output.frame, topic, args).write.format("rumq").mode("append").options(**args.sink).save()
    else:
        output.frame.write.partitionBy(*output.partition_by).mode(mode).parquet(to)


def messages(frame: DataFrame, topic: str, args: Namespace) -> DataFrame:
    made = as_messages(frame, topic)
    return made.drop("qos") if args.sink_options.once else made  # once is QoS 2 for every row


def printable(frame: DataFrame) -> list[Any]:
    """Columns for JSON, binary ones as text instead of base64."""
    return [
        f.col(field.name).cast("string").alias(field.name) if field.dataType.typeName() == "binary" else field.name
        for field in frame.schema
    ]


def stream(args: Namespace, suffix: str, output: Output, to: str | None, topic: str) -> Any:
    """Start a query."""
    name, checkpoint = f"{args.name}{suffix}", str(Path(args.checkpoint).absolute()) + suffix
    if to is None or output.mode == "update":
        # Spark has no update mode for Python sinks: write each batch.
        writer = output.frame.writeStream.foreachBatch(
            lambda batch, _: write(output._replace(frame=batch), to, topic, args, "append")
        )
    elif args.sink_options is not None:
        writer = messages(output.frame, topic, args).writeStream.format("rumq").options(**args.sink)
    else:
        writer = output.frame.writeStream.format("parquet").partitionBy(*output.partition_by).option("path", to)
    trigger: dict[str, Any] = {"availableNow": True} if args.once else {"processingTime": f"{args.every_s:g} seconds"}
    writer = writer.queryName(name).outputMode(output.mode).option("checkpointLocation", checkpoint)
    return writer.trigger(**trigger).start()


class NotDone(RumqError):
    """A job that Spark ended; str() is its message."""


def run_in(spark: SparkSession, job: Any, args: Namespace) -> str:
    """As `run`. raises: NotDone instead of Spark's exceptions"""
    try:
        return run(job, spark, args)
    except (PySparkException, Py4JJavaError) as fault:
        raise NotDone(sentence(str(fault))) from fault


def sentence(trace: str) -> str:
    """The message of rumq's worker or source in Spark's trace; otherwise the first line."""
    found = re.findall(r"^(?:\w+\.)+(?:\w+): (rumq: .*|no connection: .*|the broker .*)$", trace, re.M)
    return found[-1] if found else f"Spark: {(trace.strip() or 'no reason').splitlines()[0]}"
