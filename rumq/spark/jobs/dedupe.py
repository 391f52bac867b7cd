"""Each message once, for devices that send them again: by a sequence number, or by content.

rumqd spark run dedupe --json 'seq bigint' --by client_id --by seq --within '1 hour' \\
    --to mqtt://localhost:1883 --topic 'once/{topic}'"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from rumq.spark.job_kit.dataframe_columns import check_columns
from rumq.spark.jobs.output import Output
from rumq.table.options import length


def dedupe(df: DataFrame, by: Sequence[str] = (), time: str = "ts", within: str = "10 minutes") -> DataFrame:
    """The rows without duplicates: those with the key of a row up to `within` earlier. Rows with a null key stay.

    by: columns of the key, such as client_id and a sequence number; none: client, topic and payload, which is correct
    only if payloads contain their time. A stream remembers a key for longer: until a batch after one with a row that is
    twice `within` later
    """
    keyed, keys = df, list(by)
    if not keys:
        check_columns(df, "client_id", "topic", "payload")
        keyed, keys = df.withColumn("_hash", f.sha2("payload", 256)), ["client_id", "topic", "_hash"]
    check_columns(keyed, time, *keys)
    # A row with a null key gets a unique one, so that it stays.
    own = f.concat_ws("/", "partition", f.col("lsn").cast("string")) if "lsn" in df.columns else f.uuid()
    whole = f.lit(True)
    for name in keys:
        whole = whole & f.col(name).isNotNull()
    keyed = keyed.withColumn("_own", f.when(~whole, own)).withColumn("_time", f.col(time))
    if df.isStreaming:
        found = keyed.withWatermark("_time", within).dropDuplicatesWithinWatermark([*keys, "_own"])
    else:
        order = [name for name in ("_time", "lsn") if name in keyed.columns]
        before = f.lag("_time").over(Window.partitionBy(*keys, "_own").orderBy(*order))
        again = f.col("_time") <= before + f.expr(f"interval {within}")
        found = keyed.withColumn("_again", f.coalesce(again, f.lit(False))).where("not _again").drop("_again")
    return found.drop("_hash", "_own", "_time")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        action="append",
        metavar="COLUMN",
        help="part of the key, repeatable [client, topic and payload]",
    )
    parser.add_argument("--time", default="ts", metavar="COLUMN", help="[ts, when the broker received it]")
    parser.add_argument("--within", default="10 minutes", metavar="LENGTH", help="[10 minutes]")


def check(args: Namespace) -> None:
    """raises: BadOption"""
    for name in ("within",):
        length(name, getattr(args, name))


def columns(args: Namespace) -> list[str]:
    """Those that must be there."""
    return [*(args.by or ()), args.time]


def outputs(df: DataFrame, args: Namespace) -> list[Output]:
    return [Output(dedupe(df, args.by or (), args.time, args.within), topic="once/{topic}")]
