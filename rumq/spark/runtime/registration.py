"""Register format "rumq" with a Spark session, whose workers must be able to import it. docs/guides/spark.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from rumq.spark.runtime.cluster_cores import cluster_cores
from rumq.table.errors import WrongWorker

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

VERSIONS = re.compile(r"Python (\d+\.\d+)\.\d+ with rumq (\S+)")  # in `python_version`: what must be equal
CANNOT_RUN = re.compile(r'Cannot run program "[^\n]*')


def register(spark: SparkSession) -> None:
    """Register format "rumq" with a session. Not needed if the package `pyspark_rumq` can be imported.

    Its batches have as many tasks as the cluster has cores: register again once it has many more.
    raises: WrongWorker if workers run a Python without rumq
    """
    from rumq.spark.source.data_source import with_parallelism

    check_workers(spark)
    spark.dataSource.register(with_parallelism(cluster_cores(spark)))


def check_workers(spark: SparkSession) -> None:
    """raises: WrongWorker, see `register`. cost: of a cluster a job, which waits for its first executor; sessions of
    Spark Connect are not checked"""
    context = getattr(spark, "_sc", None)
    if context is None:
        return
    if context.master.startswith("local"):
        check_local_workers(context.pythonExec)
    else:
        check_executors(context)


def check_local_workers(program: str) -> None:
    """raises: WrongWorker"""
    from rumq.spark.source.ranges import python_version

    python = shutil.which(program)
    if python is not None and os.path.samefile(python, sys.executable) and same_environment(python):
        return
    said = "no Python: there is no such program"
    if python is not None:
        asked = "import rumq.spark.source.ranges; print(rumq.spark.source.ranges.python_version())"
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0:
            return
        said = f"a Python without it ({(done.stderr.strip() or 'it ended').splitlines()[-1]})"
    raise WrongWorker(f"{program}, {said}", python_version())


def check_executors(context: SparkContext) -> None:
    """Ask each executor's Python, as far as they have registered. raises: WrongWorker"""
    from py4j.protocol import Py4JJavaError

    from rumq.spark.source.ranges import python_version

    # Pickled by value, because it is a function of a function: an executor without rumq can run it.
    def asked(_: int) -> str:
        import sys

        try:
            from rumq.spark.source.ranges import python_version
        except ImportError as fault:
            return f"{sys.executable}, a Python without it ({fault})"
        return python_version()

    count = context.defaultParallelism
    try:
        found = set(context.parallelize(range(count), count).map(asked).collect())
    except Py4JJavaError as fault:
        why = CANNOT_RUN.search(str(fault))
        if why is None:
            raise
        raise WrongWorker(f"{context.pythonExec}, no Python on an executor ({why[0]})", python_version()) from None
    mine = VERSIONS.findall(python_version())
    if wrong := sorted(each for each in found if VERSIONS.findall(each) != mine):
        raise WrongWorker(wrong[0], python_version())


def same_environment(python: str) -> bool:
    """Virtual environments may share one program, so compare paths."""
    return os.path.dirname(os.path.abspath(python)) == os.path.dirname(os.path.abspath(sys.executable))
