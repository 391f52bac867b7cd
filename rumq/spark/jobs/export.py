"""Messages as Parquet files, one folder per day.

rumqd spark run export --to archive --checkpoint checkpoints/archive --once"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from rumq.spark.job_kit.dataframe_columns import check_columns
from rumq.spark.jobs.output import Output
from rumq.table.errors import BadOption


def export(df: DataFrame, time: str = "ts") -> DataFrame:
    """The rows with `day`, the date of the column `time`."""
    check_columns(df, time)
    return df.withColumn("day", f.to_date(time))


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--time", default="ts", metavar="COLUMN", help="[ts, when the broker received it]")


def check(args: Namespace) -> None:
    """raises: BadOption"""
    if args.to is None or args.sink_options is not None:
        raise BadOption("to", args.to or "", "a folder for Parquet files")


def outputs(df: DataFrame, args: Namespace) -> list[Output]:
    return [Output(export(df, args.time), partition_by=("day",))]
