"""A Spark session with measured settings for Python sources. docs/spark.md, "Settings"."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from rumq.spark.runtime.doctor import check_java
from rumq.spark.runtime.registration import register

if TYPE_CHECKING:
    from rumq.spark.runtime.query_lag import LagCallback

CORES_DEFAULT = 2


def settings(master: str = "local[*]") -> dict[str, str]:
    """The settings of `tune`; on a shared cluster they belong in spark-defaults.conf. They affect speed and
    reproducibility only: everything works without them."""
    found = {
        # Workers and JVM over a Unix socket: with TCP every small task waits 40 ms.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # Push conditions on topic, ts, lsn and partition down to the source.
        "spark.sql.python.filterPushdown.enabled": "true",
        # The default of 200 costs seconds in each shuffle of a small machine. A checkpoint keeps the first value.
        "spark.sql.shuffle.partitions": str(2 * cores(master)),
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        found |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.pyspark.python": sys.executable,
            "spark.pyspark.driver.python": sys.executable,
        }
    return found


def cores(master: str) -> int:
    """Cores of a local master; of another one a guess."""
    if not master.startswith("local"):
        return CORES_DEFAULT
    said = master.removeprefix("local").strip("[]").partition(",")[0]
    return int(said) if said.isdigit() else (len(os.sched_getaffinity(0)) if said else 1)


def tune(
    builder: SparkSession.Builder, master: str = "local[*]", *, checkpoints_local: bool = False
) -> SparkSession.Builder:
    """A builder with these settings; later settings override them.

    checkpoints_local: checkpoints are on a disk of this machine, not in an object store or HDFS, which more than
    halves the time to write them
    """
    if master.startswith("local"):
        # Spark's default, python3 of the PATH, has no rumq if this one is of a virtual environment.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = builder.master(master)
    for name, value in settings(master).items():
        builder = builder.config(name, value)
    if checkpoints_local:
        builder = builder.config(
            "spark.sql.streaming.checkpointFileManagerClass",
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
        )
    return builder


def session(
    name: str = "rumq",
    master: str = "local[*]",
    *,
    checkpoints_local: bool = True,
    lag: str | LagCallback | None = None,
    **more: str,
) -> SparkSession:
    """A session with format "rumq" registered.

    lag: where to report the lag of its queries, see `rumq.spark.runtime.query_lag.report_lag`
    more: settings of Spark, `spark_ui_enabled="false"`

    Returns a session that already runs in this process unchanged: its settings are fixed.
    """
    builder = tune(SparkSession.builder.appName(name), master, checkpoints_local=checkpoints_local)
    for setting, value in more.items():
        builder = builder.config(setting.replace("_", "."), value)
    if SparkSession.getActiveSession() is None and not master.startswith("sc://"):
        check_java()
    made: SparkSession = builder.getOrCreate()
    register(made)
    if lag is not None:
        from rumq.spark.runtime.query_lag import report_lag

        report_lag(made, lag)
    return made
