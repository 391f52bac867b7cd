"""The last message of each topic, published as retained: new subscribers get the current values at once.

rumqd spark run last --subscribe 'plant/#' --to mqtt://localhost:1883 --checkpoint checkpoints/last --every 1s"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from rumq.spark.job_kit.dataframe_columns import check_columns
from rumq.spark.jobs.output import Output

LAST = ("ts", "lsn", "payload", "qos", "content_type")


def last(df: DataFrame) -> DataFrame:
    """A row for each topic: topic, ts, lsn, payload, qos, content_type of its last message, and retain.

    A topic is in one partition, where times never decrease. A stream returns changed topics: output mode update.
    An empty payload counts as well: published as retained, it clears the topic, as in MQTT.
    """
    check_columns(df, "topic", *LAST)
    newest = f.max_by(f.struct(*LAST), f.struct("ts", "lsn")).alias("_last")
    return df.groupBy("topic").agg(newest).select("topic", "_last.*", f.lit(True).alias("retain"))


def add_arguments(parser: ArgumentParser) -> None:
    """No options of its own."""


def outputs(df: DataFrame, args: Namespace) -> list[Output]:
    return [Output(last(df), mode="update", topic="last/{topic}")]
