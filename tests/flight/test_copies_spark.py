"""A stream of Spark reads a log from two copies, and one server is killed between two of its batches."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker_process import ENVIRONMENT
from tests.flight.test_copies_client import copies_at
from tests.flight.test_process import ByHand

pytestmark = [pytest.mark.spark, pytest.mark.long]

DRIVER = """
import os, signal, sys, rumq.spark
address, pid, folder = sys.argv[1:]
spark = rumq.spark.session("copies", "local[2]", spark_ui_enabled="false", spark_log_level="ERROR")
frame = spark.readStream.format("rumq").option("broker", address).option("maxOffsetsPerTrigger", "100").load()
seen = []

def take(batch, number):
    seen.extend(row.lsn for row in batch.select("lsn").collect())
    if number == 1:
        os.kill(int(pid), signal.SIGKILL)

query = frame.writeStream.foreachBatch(take).option("checkpointLocation", folder)
query.trigger(availableNow=True).start().awaitTermination()
print(seen == sorted(set(seen)), len(seen))
"""


@pytest.mark.timeout(300)
def test_a_stream_goes_on_at_another_copy_with_each_record_once(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed (openjdk-17-jre-headless)")
    first, second = (ByHand(root) for root in copies_at(tmp_path, 60))
    done = subprocess.run(
        [
            sys.executable, "-c", DRIVER, f"{first.address},{second.address}", str(first.process.pid),
            str(tmp_path / "checkpoint"),
        ],
        capture_output=True, text=True, timeout=240, check=False,
        env={**ENVIRONMENT, "PYTHONPATH": str(Path.cwd()), "SPARK_HOME": str(Path(pyspark.__file__).parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n")[-2] == "True 600"
    assert first.process.poll() is not None and second.stop() == 0
