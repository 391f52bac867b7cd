"""The environment that executors of a cluster run: an archive that Spark brings to them. docs/guides/spark-cluster.md.

One name of a program serves both sides, because Spark starts the planner of a Python source on the driver by the name
that it starts workers by: the driver finds it in its own environment, an executor in the unpacked archive."""

from __future__ import annotations

import os
import shutil
import sys

from rumq.table.errors import BadOption

FOLDER = "rumq-environment"  # of the unpacked archive, in the working directory of an executor
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def executor_settings(archive: str, master: str) -> dict[str, str]:
    """Settings of the session, and the driver's own PATH and PYSPARK_PYTHON, which a Spark that runs already ignores.

    archive: a path of this machine, or a URI that executors can fetch, such as hdfs:// or s3a://. raises: BadOption"""
    if master.startswith(("local", "sc://")):
        allowed = "it with a cluster's master: here workers run this Python"
        raise BadOption("environment", archive, allowed)
    if "://" not in archive and not os.path.isfile(archive):
        allowed = "an archive that exists, as `venv-pack -o FILE` makes one (docs/guides/spark-cluster.md)"
        raise BadOption("environment", archive, allowed)
    program, folder = own_program()
    os.environ["PYSPARK_PYTHON"] = program
    os.environ["PATH"] = f"{folder}:{os.environ.get('PATH', SYSTEM_PATH)}"
    place = archive if "://" in archive else os.path.abspath(archive)
    return {
        "spark.archives": f"{place}#{FOLDER}",
        # Python finds its libraries by the PATH of its own process, and Spark gives this one to the planner, too.
        "spark.executorEnv.PATH": f"./{FOLDER}/bin:{folder}:{SYSTEM_PATH}",
    }


def own_program() -> tuple[str, str]:
    """(name, folder) of this Python, by a name that another environment of the same version has too."""
    folder = os.path.dirname(os.path.abspath(sys.executable))
    for name in (f"python{sys.version_info[0]}.{sys.version_info[1]}", "python3", "python"):
        if shutil.which(name, path=folder) is not None:
            return name, folder
    return os.path.basename(sys.executable), folder
