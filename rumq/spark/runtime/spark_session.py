"""A Spark session with measured settings for Python sources.

docs/guides/spark.md, "Settings"; docs/guides/spark-cluster.md."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from rumq.spark.runtime.doctor import check_java
from rumq.spark.runtime.executor_environment import executor_settings
from rumq.spark.runtime.registration import register

if TYPE_CHECKING:
    from rumq.spark.runtime.query_lag import LagCallback

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def settings(master: str = "local[*]") -> dict[str, str]:
    """The settings of `tune`; on a shared cluster they belong in spark-defaults.conf. They affect speed and
    reproducibility only: everything works without them."""
    found = {
        # Workers and JVM over a Unix socket: with TCP every small task waits 40 ms.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # Push conditions on topic, ts, lsn and partition down to the source.
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.ui.showConsoleProgress": "false",
    }
    if is_local(master):
        found |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.pyspark.python": sys.executable,
            "spark.pyspark.driver.python": sys.executable,
        }
    return found


def is_local(master: str) -> bool:
    """Whether executors are this JVM, or at least on this machine."""
    return master.startswith("local")


def tune(
    builder: SparkSession.Builder, master: str = "local[*]", *, checkpoints_local: bool = False
) -> SparkSession.Builder:
    """A builder with these settings; later settings override them.

    checkpoints_local: checkpoints are on a disk of this machine, not in an object store or HDFS, which more than
    halves the time to write them
    """
    # Spark's default, python3 of the PATH, has no rumq if this one is of a virtual environment. Of a cluster too:
    # where an executor has no such path it says so, and a python3 there would lack rumq.
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
    checkpoints_local: bool | None = None,
    environment: str | None = None,
    lag: str | LagCallback | None = None,
    **more: str,
) -> SparkSession:
    """A session with format "rumq" registered.

    checkpoints_local: as of `tune`; None: for a local master
    environment: an archive (venv-pack, conda-pack) whose Python the executors of a cluster run; None: they run the
    path of `PYSPARK_PYTHON`, or of the Python that runs this
    lag: where to report the lag of its queries, see `rumq.spark.runtime.query_lag.report_lag`
    more: settings of Spark, `spark_ui_enabled="false"`

    Returns a session that already runs in this process unchanged: its settings are fixed.
    raises: NoJava, WrongWorker, BadOption
    """
    is_new = SparkSession.getActiveSession() is None
    if environment is not None:
        for setting, value in executor_settings(environment, master).items():
            more.setdefault(setting, value)
    made_local = is_local(master) if checkpoints_local is None else checkpoints_local
    builder = tune(SparkSession.builder.appName(name), master, checkpoints_local=made_local)
    for setting, value in more.items():
        builder = builder.config(setting.replace("_", "."), value)
    if is_new and not master.startswith("sc://"):
        check_java()
    made: SparkSession = builder.getOrCreate()
    if is_new and is_local(master):
        limit_shuffles(made)
    register(made)
    if lag is not None:
        from rumq.spark.runtime.query_lag import report_lag

        report_lag(made, lag)
    return made


def limit_shuffles(spark: SparkSession) -> None:
    """Twice the cores, unless the user has set it, in spark-defaults.conf too: the default of 200 costs seconds in each
    shuffle of a small machine. A checkpoint keeps the first value."""
    context = spark.sparkContext
    if not context.getConf().contains(SHUFFLE_PARTITIONS):
        spark.conf.set(SHUFFLE_PARTITIONS, str(2 * context.defaultParallelism))
