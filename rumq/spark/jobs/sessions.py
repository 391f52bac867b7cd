"""Sessions of a device: from its first message to the last one before a gap.

rumqd spark run sessions --by client_id --gap '5 minutes'"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from rumq.spark.job_kit.dataframe_columns import check_columns
from rumq.spark.jobs.output import Output
from rumq.table.options import length


def sessions(
    df: DataFrame,
    gap: str,
    by: Sequence[str] = ("client_id",),
    time: str = "ts",
    late: str = "10 minutes",
) -> DataFrame:
    """One row per session: by, start and end (its first and last time), count.

    gap: messages further apart are of two sessions; late: a stream emits a session once a row so much later arrived
    """
    check_columns(df, time, *by)
    rows = df.withColumn("_at", f.col(time)).withWatermark("_at", late)
    found = rows.groupBy(f.session_window("_at", gap).alias("_session"), *by)
    return found.agg(f.min("_at").alias("start"), f.max("_at").alias("end"), f.count("*").alias("count")).drop(
        "_session"
    )


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--by", action="append", metavar="COLUMN", help="repeatable [client_id]")
    parser.add_argument("--time", default="ts", metavar="COLUMN", help="[ts, when the broker received it]")
    parser.add_argument("--gap", default="5 minutes", metavar="LENGTH", help="[5 minutes]")
    parser.add_argument("--late", default="10 minutes", metavar="LENGTH", help="how late rows may arrive [10 minutes]")


def check(args: Namespace) -> None:
    """raises: BadOption"""
    for name in ("gap", "late"):
        length(name, getattr(args, name))


def columns(args: Namespace) -> list[str]:
    """Those that must be there."""
    return [*(args.by or ["client_id"]), args.time]


def outputs(df: DataFrame, args: Namespace) -> list[Output]:
    by = args.by or ["client_id"]
    frame = sessions(df, args.gap, by, args.time, args.late)
    return [Output(frame, topic="sessions/" + "/".join(f"{{{name}}}" for name in by))]
