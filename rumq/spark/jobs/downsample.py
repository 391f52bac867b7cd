"""Minimum, mean, maximum and count of columns per time window.

rumqd spark run downsample --topics 'weather/{city}/temperature' --json 'time timestamp, celsius double' \\
    --value celsius --by city --time time --window '1 day' --to mqtt://localhost:1883 --topic 'weather/{city}/daily'"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from rumq.spark.job_kit.dataframe_columns import check_columns
from rumq.spark.jobs.output import Output
from rumq.table.options import length


def downsample(
    df: DataFrame,
    window: str,
    values: Sequence[str],
    by: Sequence[str] = ("topic",),
    time: str = "ts",
    late: str = "10 minutes",
) -> DataFrame:
    """One row per window and group: by, start, count, and of each value its _min, _mean and _max.

    count: rows, including null values; late: a stream emits a window once a row so much later arrived
    """
    check_columns(df, time, *by, *values)
    aggregates = [f.count("*").alias("count")]
    for value in values:
        aggregates += [
            f.min(value).alias(f"{value}_min"),
            f.avg(value).alias(f"{value}_mean"),
            f.max(value).alias(f"{value}_max"),
        ]
    windows = df.withWatermark(time, late).groupBy(f.window(time, window).alias("_window"), *by)
    found = windows.agg(*aggregates)
    return found.select(*by, f.col("_window.start").alias("start"), *found.columns[1 + len(by) :])


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--value", action="append", required=True, metavar="COLUMN", help="repeatable")
    parser.add_argument("--by", action="append", metavar="COLUMN", help="repeatable [topic]")
    parser.add_argument("--time", default="ts", metavar="COLUMN", help="[ts, when the broker received it]")
    parser.add_argument("--window", default="1 minute", metavar="LENGTH", help="[1 minute]")
    parser.add_argument("--late", default="10 minutes", metavar="LENGTH", help="how late rows may arrive [10 minutes]")


def check(args: Namespace) -> None:
    """raises: BadOption"""
    for name in ("window", "late"):
        length(name, getattr(args, name))


def columns(args: Namespace) -> list[str]:
    """Those that must be there."""
    return [*args.value, *(args.by or ["topic"]), args.time]


def outputs(df: DataFrame, args: Namespace) -> list[Output]:
    by = args.by or ["topic"]
    frame = downsample(df, args.window, args.value, by, args.time, args.late)
    return [Output(frame, topic="downsample/" + "/".join(f"{{{name}}}" for name in by))]
