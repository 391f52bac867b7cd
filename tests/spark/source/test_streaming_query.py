"""Streaming queries in Spark: each record once, over restarts and kills. docs/guides/spark.md, "Stream"."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commitlog import Store
from tests.commitlog.records import mark
from tests.spark.logs import Publisher, message, store_at

pytestmark = pytest.mark.spark


def publish(store: Store, count: int) -> None:
    for partition in store.own:
        Publisher(partition).chunk([message("a", b"x" * 20)] * count)
        mark(partition)


def test_a_query_goes_on_where_its_checkpoint_says(
    spark: Any, place: Callable[[str], dict[str, str]], tmp_path: Path
) -> None:
    root, out, checkpoint = (str(tmp_path / name) for name in ("data", "out", "checkpoint"))
    store = store_at(root, partitions=2)
    options = {"maxOffsetsPerTrigger": "60", "startingOffsets": "earliest"}
    for count in (40, 10):
        publish(store, count)
        frame = spark.readStream.format("rumq").options(**options, **place(root)).load().select("partition", "lsn")
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(out)
        )
        query.awaitTermination()
        assert not query.exception()
    rows = spark.read.parquet(out).collect()
    assert sorted((row.partition, row.lsn) for row in rows) == [
        (f"main/g1/p{number}", lsn) for number in (0, 1) for lsn in range(50)
    ]
    store.close()


DRIVER = """
import sys, rumq.spark
root, out, checkpoint = sys.argv[1:]
spark = rumq.spark.session("killed", "local[2]", spark_ui_enabled="false", spark_log_level="ERROR")
frame = spark.readStream.format("rumq").option("maxOffsetsPerTrigger", "3000").load(root)
query = (
    frame.select("partition", "lsn", "topic_offset").writeStream.format("parquet")
    .option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start(out)
)
told = None
while not query.awaitTermination(0.05):
    batch = (query.lastProgress or {}).get("batchId")
    if batch != told:
        told = batch
        print(batch, flush=True)
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_kills_of_the_driver_lose_nothing_and_double_nothing(spark: Any, tmp_path: Path) -> None:
    """kill -9 of driver and JVM three times, while a writer goes on and seals segments."""
    root, out, checkpoint = (str(tmp_path / name) for name in ("data", "out", "checkpoint"))
    store = store_at(root, partitions=2, segment_bytes_max=200_000)
    written = 0
    for kill in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", DRIVER, root, out, checkpoint],
            stdout=subprocess.PIPE, start_new_session=True, env={**os.environ, "PYTHONPATH": os.getcwd()},
        ) as driver:  # fmt: skip
            assert driver.stdout is not None
            for _ in range(4 + kill):
                publish(store, 2500)
                written += 2500
                assert driver.stdout.readline().strip().isdigit()
            # One batch has just ended, and the next one has begun.
            os.killpg(driver.pid, signal.SIGKILL)
    store.close()
    frame = spark.readStream.format("rumq").load(root).select("partition", "lsn", "topic_offset")
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(out)
    )
    query.awaitTermination()
    rows = spark.read.parquet(out)
    assert rows.count() == rows.distinct().count() == 2 * written
    assert rows.where("lsn <> topic_offset").count() == 0  # one topic a partition: both are dense
