"""Driver and JVM killed in the middle of a stream while a broker seals, exports, merges and lets go: nothing is lost,
nothing doubled. docs/guides/spark.md, "History"."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from commitlog import RealFiles
from commitlog.read.log_reader import LogReader
from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd

pytestmark = pytest.mark.spark
P0 = "main/g1/p0"
# Of the log next to nothing stays: what a batch reads has often gone to the lake since it was planned.
SETTINGS = (
    "log.segment_bytes_max=64 KiB", "log.retention_bytes_max=64 KiB", "log.retain_for_export_bytes_max=1 GiB",
)  # fmt: skip

DRIVER = """
import sys, rumq.spark
root, out, checkpoint = sys.argv[1:]
spark = rumq.spark.session(
    "killed", "local[2]", spark_ui_enabled="false", spark_log_level="ERROR",
    spark_driver_extraJavaOptions="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)
query = (
    spark.readStream.format("rumq").option("maxOffsetsPerTrigger", "700").load(root)
    .select("partition", "lsn", "topic_offset", "payload").writeStream.format("parquet")
    .option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start(out)
)
told = None
while not query.awaitTermination(0.02):
    batch = (query.lastProgress or {}).get("batchId")
    if batch != told:
        told = batch
        print(batch, flush=True)
"""


def publish(broker: Rumqd, first: int, count: int) -> None:
    lines = b"".join(b"%07d" % n + b"." * 200 + b"\n" for n in range(first, first + count))
    sent = rumqd("pub", "plant/7/temp", "-l", "-q", "1", "--port", str(broker.address.port), stdin=lines)
    assert sent.status == 0, sent.err


def killed_after_batches(batches: int, more_s: float, *paths: str) -> None:
    """A driver that has done so many batches, killed so long behind the last of them."""
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, *paths],
        stdout=subprocess.PIPE, start_new_session=True, env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as driver:  # fmt: skip
        assert driver.stdout is not None
        for _ in range(batches):
            assert driver.stdout.readline().strip().isdigit()
        time.sleep(more_s)  # how far into a batch, not something that is waited for
        os.killpg(driver.pid, signal.SIGKILL)


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_kills_lose_nothing_and_double_nothing(spark: Any, tmp_path: Path, kills: int) -> None:
    data, out, checkpoint = (str(tmp_path / name) for name in ("data", "out", "checkpoint"))
    flags = [word for each in SETTINGS for word in ("--set", each)]
    broker = Rumqd(tmp_path / "data", *flags, "--set", f"log.export_to={tmp_path}/lake")
    broker.start()
    chance = random.Random(kills)
    written = 0
    for kill in range(kills):
        publish(broker, written, 4000)
        written += 4000
        killed_after_batches(1 + kill % 3, chance.uniform(0, 0.4), data, out, checkpoint)
    publish(broker, written, 500)
    written += 500
    broker.heard(  # retention waits for the export, which takes its time
        lambda event: event["event"] == "log.trimmed" and event["stream"] == "main"
        and event["first_lsn"] > written // 2
    )  # fmt: skip
    broker.stop()
    view = LogReader(RealFiles(), data).maybe_partition(P0)
    assert view is not None and view.first_lsn > written // 2, "the lake was not needed"

    query = (
        spark.readStream.format("rumq").load(data).select("partition", "lsn", "topic_offset", "payload")
        .writeStream.format("parquet").option("checkpointLocation", checkpoint).trigger(availableNow=True).start(out)
    )  # fmt: skip
    query.awaitTermination()
    rows = [(r.lsn, r.topic_offset, int(bytes(r.payload)[:7])) for r in spark.read.parquet(out).collect()]
    assert sorted(rows) == [(n, n, n) for n in range(written)]
