"""Register format "rumq" with a Spark session, whose workers must be able to import it. docs/spark.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from rumq.table.errors import WrongWorker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register format "rumq" with a session. Not needed if the package `pyspark_rumq` can be imported.

    raises: WrongWorker if a local session's workers run a Python without rumq
    """
    from rumq.spark.source.data_source import RumqDataSource

    check_workers(spark)
    spark.dataSource.register(RumqDataSource)


def check_workers(spark: SparkSession) -> None:
    """raises: WrongWorker, see `register`. Cluster sessions are not checked: their Pythons are on other machines."""
    from rumq.spark.source.ranges import python_version

    context = getattr(spark, "_sc", None)
    if context is None or not context.master.startswith("local"):
        return
    python = shutil.which(context.pythonExec)
    if python is not None and os.path.samefile(python, sys.executable) and same_environment(python):
        return
    said = "no Python: there is no such program"
    if python is not None:
        asked = "import rumq.spark.source.ranges; print(rumq.spark.source.ranges.here())"
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0:
            return
        said = f"a Python without it ({(done.stderr.strip() or 'it ended').splitlines()[-1]})"
    raise WrongWorker(f"{context.pythonExec}, {said}", python_version())


def same_environment(python: str) -> bool:
    """Virtual environments may share one program, so compare paths."""
    return os.path.dirname(os.path.abspath(python)) == os.path.dirname(os.path.abspath(sys.executable))
