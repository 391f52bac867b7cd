"""Messages published again in their order, at their original pace or faster.

rumqd spark run replay --subscribe 'plant/#' --from -1h --until -30m --speed 10 --to mqtt://localhost:1883"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

import trio
from pyspark.sql import DataFrame

from rumq.client import Outgoing
from rumq.sink.broker_check import connected
from rumq.spark.job_kit.dataframe_columns import as_messages, check_columns
from rumq.spark.job_kit.pacing import Due, Paced, pace
from rumq.table.errors import BadOption

OF_A_PUBLISH = {"correlation_data": "correlation_data", "content_type": "content_type", "message_expiry":
                "message_expiry_interval", "payload_format": "payload_format_indicator", "response_topic":
                "response_topic"}  # fmt: skip


def replay(df: DataFrame, speed: float = 1.0) -> Iterator[Due]:
    """Messages in order, each with its due time in seconds after the first. speed: 0 for all at once

    cost: a sort; the driver holds one of Spark's partitions in memory
    """
    check_columns(df, "ts", "lsn", "topic", "payload")
    rows = df.selectExpr("unix_micros(ts) as _us", "*").orderBy("_us", "lsn")
    first: int | None = None
    for row in rows.toLocalIterator(prefetchPartitions=True):
        first = row["_us"] if first is None else first
        seconds = (row["_us"] - first) / 1e6 / speed if speed else 0.0
        yield Due(seconds, outgoing(row.asDict()))


def outgoing(row: dict[str, Any]) -> Outgoing:
    given: Any = {word: row[name] for name, word in OF_A_PUBLISH.items() if row.get(name) is not None}
    if row.get("properties"):
        given["user_properties"] = [(pair["key"], pair["value"]) for pair in row["properties"]]
    payload = bytes(row["payload"] or b"")
    return Outgoing(row["topic"], payload, row.get("qos") or 0, bool(row.get("retain")), given)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        metavar="N",
        help="times faster; 0: all at once [1, the original pace]",
    )


def check(args: Namespace) -> None:
    """raises: BadOption"""
    if args.checkpoint or args.once or args.every:
        raise BadOption("checkpoint", args.checkpoint or "", "none: a replay has an end, --until, and begins anew")
    if not (args.speed >= 0):
        raise BadOption("speed", str(args.speed), "how many times faster, or 0 for all at once")
    if args.sink_options is None:
        raise BadOption("to", args.to or "", "mqtt://host:1883")


def run(df: DataFrame, args: Namespace) -> str:
    """Returns a summary."""
    template = args.topic or "{topic}"
    frame = df if template == "{topic}" else as_messages(df, template, "ts", "lsn")

    async def publish_all() -> Paced:
        async with connected(args.sink_options) as client:
            return await pace(replay(frame, args.speed), client.publish_batch, trio.current_time, trio.sleep_until)

    done = trio.run(publish_all)
    late = f", the latest {done.late_s:.1f} s late" if done.late_s >= 0.1 else ""
    return f"{done.messages} messages published{late}"
