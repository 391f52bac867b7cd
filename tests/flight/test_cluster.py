"""Executors that are processes of their own read over the network: Spark's local-cluster, two JVMs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flight.served import served
from tests.spark.logs import Publisher, message, store_at

pytestmark = [pytest.mark.spark, pytest.mark.long]

DRIVER = """
import os, sys, rumq.spark
address, = sys.argv[1:]
spark = rumq.spark.session(
    "cluster", "local-cluster[2,1,1024]", spark_ui_enabled="false", spark_log_level="ERROR",
    spark_driver_host="127.0.0.1", spark_pyspark_python=sys.executable,
)
frame = spark.read.format("rumq").option("broker", address).option("minPartitions", "8").load()
print(frame.count(), frame.select("partition", "lsn").distinct().count())
print(len(set(spark.sparkContext.parallelize(range(8), 8).map(lambda _: os.getppid()).collect())))
"""


@pytest.mark.timeout(300)
def test_two_executors_read_each_record_once(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed (openjdk-17-jre-headless)")
    store = store_at(str(tmp_path / "d"), partitions=2, segment_bytes_max=1 << 20)
    for partition in store.own:
        for _ in range(10):
            Publisher(partition).chunk([message("plant/7", b"x" * 50)] * 5_000)
    store.close()
    with served(str(tmp_path / "d")) as server:
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, server.address], capture_output=True, text=True, timeout=240, check=False,
            env={**os.environ, "PYTHONPATH": os.getcwd(), "SPARK_HOME": str(Path(pyspark.__file__).parent)},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    rows, executors = done.stdout.split("\n")[-3:-1]
    assert (rows, executors) == ("100000 100000", "2")
