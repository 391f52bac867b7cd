"""The log as a table in Spark: `rumq.spark.session()`, then `spark.read.format("rumq").load(DATA_DIR)`, or
`rumq.spark.read(spark, DATA_DIR)` for what is in a lake too.

docs/spark.md. Knows no broker: it reads the files of a data directory, with the broker on or off."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rumq.spark.source.history import read
    from rumq.spark.source.topic_predicates import mqtt_filter_to_predicate

LAZY = {
    "read": "source.history",
    "mqtt_filter_to_predicate": "source.topic_predicates",
    "as_messages": "job_kit.dataframe_columns",
    "of_topic": "job_kit.dataframe_columns",
    "report_lag": "runtime.query_lag",
    "with_json": "job_kit.dataframe_columns",
    "with_topic_parts": "job_kit.dataframe_columns",
}


def register(spark: Any) -> None:
    """Make format "rumq" known to a session. Not needed where the package `pyspark_rumq` can be imported.

    raises: WrongWorker where a local session's workers run a Python that has no rumq
    """
    from rumq.spark.source.data_source import RumqDataSource

    check_workers(spark)
    spark.dataSource.register(RumqDataSource)


def check_workers(spark: Any) -> None:
    """raises: WrongWorker, see `register`. A session of a cluster is not looked at: its Pythons are elsewhere."""
    from rumq.spark.source.data_source import here
    from rumq.table.errors import WrongWorker

    context = getattr(spark, "_sc", None)
    if context is None or not context.master.startswith("local"):
        return
    python = shutil.which(context.pythonExec)
    if python is not None and os.path.samefile(python, sys.executable) and same_environment(python):
        return
    said = "no Python: there is no such program"
    if python is not None:
        asked = "import sys, rumq.spark.source.data_source; print(rumq.spark.source.data_source.here())"
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0:
            return
        said = f"a Python without it ({(done.stderr.strip() or 'it ended').splitlines()[-1]})"
    raise WrongWorker(f"{context.pythonExec}, {said}", here())


def same_environment(python: str) -> bool:
    """Virtual environments may share one program: it is the path that tells them apart."""
    return os.path.dirname(os.path.abspath(python)) == os.path.dirname(os.path.abspath(sys.executable))


def session(name: str = "rumq", master: str = "local[*]", **more: Any) -> Any:
    """A Spark session with the measured settings, which knows format "rumq"; see `rumq.spark.session.session`."""
    from rumq.spark.runtime.spark_session import session as made

    return made(name, master, **more)


def __getattr__(name: str) -> Any:
    """What needs pyspark, when it is asked for: this module is loaded by every session that looks for sources."""
    from importlib import import_module

    if name in LAZY:
        return getattr(import_module(f"rumq.spark.{LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["check_workers", "mqtt_filter_to_predicate", "read", "register", "session"]
