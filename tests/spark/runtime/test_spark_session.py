"""What a session sets and what it leaves to the user, on this machine and on a cluster. No JVM is started.

docs/guides/spark-cluster.md."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

from pyspark import cloudpickle

from rumq.spark.runtime.cluster_cores import LOOK_SECONDS, cluster_cores, promised_cores, settled
from rumq.spark.runtime.executor_environment import FOLDER, executor_settings
from rumq.spark.runtime.registration import VERSIONS
from rumq.spark.runtime.spark_session import SHUFFLE_PARTITIONS, limit_shuffles, settings
from rumq.spark.source.data_source import with_parallelism
from rumq.spark.source.ranges import python_version, ranges
from rumq.table.errors import BadOption
from rumq.table.flight_location import FlightLocation
from rumq.table.options import TableOptions
from rumq.table.plan import LsnSpan

CLUSTER = "spark://master:7077"


class Session:
    """What `limit_shuffles` and `cluster_cores` look at. registered: cores, one number for each look"""

    def __init__(self, master: str, *registered: int, **set_by_user: str) -> None:
        self.conf = self._sc = self.sparkContext = self
        self.master, self._registered, self.values = master, list(registered), set_by_user

    @property
    def defaultParallelism(self) -> int:
        return self._registered.pop(0) if len(self._registered) > 1 else self._registered[0]

    def getConf(self) -> Any:
        return self

    def contains(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: Any) -> Any:
        return self.values.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.values[name] = value


def test_shuffle_partitions_are_the_users() -> None:
    assert SHUFFLE_PARTITIONS not in settings(CLUSTER) and SHUFFLE_PARTITIONS not in settings("local[*]")
    theirs = Session("local[2]", 2, **{SHUFFLE_PARTITIONS: "7"})
    limit_shuffles(theirs)
    assert theirs.values == {SHUFFLE_PARTITIONS: "7"}
    unset = Session("local[2]", 2)
    limit_shuffles(unset)
    assert unset.values == {SHUFFLE_PARTITIONS: "4"}


@pytest.mark.parametrize(
    ("said", "cores"),
    [
        ({}, 0),
        ({"spark.default.parallelism": "40", "spark.cores.max": "8"}, 40),
        ({"spark.cores.max": "8"}, 8),
        ({"spark.executor.instances": "6", "spark.executor.cores": "4"}, 24),
        ({"spark.executor.instances": "6"}, 6),
        ({"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "50",
          "spark.executor.instances": "2", "spark.executor.cores": "2"}, 100),
        ({"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "infinity"}, 0),
    ],
)  # fmt: skip
def test_cores_are_those_that_the_settings_promise(said: dict[str, str], cores: int) -> None:
    assert promised_cores(said.get) == cores


def test_cores_are_otherwise_those_that_have_registered_once_no_more_come() -> None:
    waits: list[float] = []
    assert cluster_cores(Session(CLUSTER, 2, 2, 16, 16, 32), wait=waits.append) == 32
    assert len(waits) == 7 and set(waits) == {LOOK_SECONDS}
    growing = iter(range(100))
    assert settled(lambda: next(growing), lambda seconds: None) < 100, "it does not wait for ever"
    assert cluster_cores(Session("local[3]", 3, **{"spark.executor.instances": "50"})) == 3
    assert cluster_cores(Session(CLUSTER, 2, **{"spark.cores.max": "64"})) == 64


def test_tasks_follow_the_cores_of_the_cluster_and_not_those_of_the_driver() -> None:
    span = [LsnSpan("main/g1/p0", 0, 100_000_000)]
    for cores in (1, 7, 300):
        options = TableOptions("", records_max=1 << 40, cores=cores, flight_location=FlightLocation("grpc://n1:8815"))
        assert len(ranges(span, options)) == cores


def test_the_source_of_a_session_is_pickled_with_its_cores() -> None:
    """As Spark hands it to the process that plans."""
    asked = "import pickle, sys; made = pickle.load(sys.stdin.buffer); print(made.name(), made({}).parallelism)"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        input=cloudpickle.dumps(with_parallelism(12)),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"rumq 12\n"


def test_an_archive_is_brought_to_executors_and_one_name_is_right_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    archive = tmp_path / "executors.tar.gz"
    archive.write_bytes(b"")
    found = executor_settings(str(archive), CLUSTER)
    assert found["spark.archives"] == f"{archive}#{FOLDER}"
    assert found["spark.executorEnv.PATH"].startswith(f"./{FOLDER}/bin:")
    program = os.environ["PYSPARK_PYTHON"]
    assert "/" not in program and os.environ["PATH"] == f"{os.path.dirname(sys.executable)}:/usr/bin"
    done = subprocess.run([program, "-c", "import rumq, sys; print(sys.prefix)"], capture_output=True, check=True)
    assert done.stdout.decode().strip() == sys.prefix
    assert executor_settings("hdfs://n/e.tar.gz", CLUSTER)["spark.archives"] == f"hdfs://n/e.tar.gz#{FOLDER}"


def test_an_archive_that_cannot_be_brought_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"option environment = .* an archive that exists"):
        executor_settings(str(tmp_path / "none.tar.gz"), CLUSTER)
    with pytest.raises(BadOption, match="it with a cluster's master"):
        executor_settings("e.tar.gz", "local[2]")


def test_versions_are_compared_without_path_and_patch() -> None:
    assert VERSIONS.findall(python_version()) == VERSIONS.findall(python_version().replace(sys.executable, "/x"))
    assert VERSIONS.findall("Python 3.11.2 with rumq 1.0 (/a)") == VERSIONS.findall("Python 3.11.9 with rumq 1.0 (/b)")
    assert VERSIONS.findall("Python 3.12.2 with rumq 1.0 (/a)") != VERSIONS.findall("Python 3.11.9 with rumq 1.0 (/b)")
