"""JSON payloads as columns. Payloads that do not parse become dead letters with place and reason; the job continues.

rumqd spark run parse --json 'time timestamp, celsius double' --to readings --bad dead-letters"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from rumq.spark.job_kit.dataframe_columns import check_columns, with_json
from rumq.spark.jobs.output import Output
from rumq.table.errors import BadOption


def parse(df: DataFrame, schema: str) -> DataFrame:
    """The rows with a payload that matches the schema, its fields as columns."""
    return with_json(df, schema, bad="_why").where("_why is null").drop("_why", "payload")


def dead_letters(df: DataFrame, schema: str) -> DataFrame:
    """The other rows: place (partition, lsn), time, payload, and reason."""
    check_columns(df, "topic", "partition", "lsn", "ts", "payload")
    place = df.select("topic", "partition", "lsn", "ts", "payload", f.struct("payload").alias("_at"))
    # A field of the schema may have the name of a column: report the record's column, not the JSON field.
    kept = place.select(f.struct("topic", "partition", "lsn", "ts", "payload").alias("_at"), "payload")
    found = with_json(kept, schema, bad="_why").where("_why is not null")
    return found.select("_at.*", f.col("_why").alias("why"))


def dead_messages(letters: DataFrame) -> DataFrame:
    """Dead letters to publish: the unchanged payload, place and reason as user properties."""
    place = f.concat_ws("/", "partition", f.col("lsn").cast("string"))
    pairs = [("rumq-place", place), ("rumq-why", f.col("why"))]
    properties = f.array(*(f.struct(f.lit(k).alias("key"), v.alias("value")) for k, v in pairs))
    return letters.select("topic", "payload", properties.alias("properties"))


def add_arguments(parser: ArgumentParser) -> None:
    """No options of its own: every job has --json and --bad."""


def check(args: Namespace) -> None:
    """raises: BadOption"""
    if not args.json:
        raise BadOption("json", "", "columns and their types, 'time timestamp, celsius double'")


def outputs(df: DataFrame, args: Namespace) -> list[Output]:
    names = [n for n in ("client_id", "qos", "retain", "properties", "topic_offset") if n in df.columns]
    return [Output(df.drop("payload", *names), topic="parsed/{topic}")]
