"""Spark on a real cluster: a standalone master and two workers, without rumq of their own.

docs/guides/spark-cluster.md."""

import json
import os
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster
from tests.cluster.live.test_any_node import until
from tests.flight.served import served
from tests.spark.logs import Publisher, message, store_at
from tests.spark.standalone import DRIVER_JVM, Driver, Standalone

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1200)]

SESSION = f"""
import json, os, sys, rumq.spark
def session(master, **more):
    return rumq.spark.session(
        "standalone", master, spark_ui_enabled="false", spark_log_level="ERROR", spark_driver_host="127.0.0.1",
        spark_executor_memory="512m", spark_driver_extraJavaOptions={DRIVER_JVM!r},
        spark_executor_extraJavaOptions={DRIVER_JVM!r}, **more,
    )
"""
BATCH = (
    SESSION
    + """
master, address, environment = sys.argv[1:]
spark = session(master, **({"environment": environment} if environment else {}))
frame = spark.read.format("rumq").schema("lsn bigint").option("broker", address).load()
def where(_):
    import rumq, sys
    return os.getppid(), sys.executable, rumq.__file__
found = spark.sparkContext.parallelize(range(8), 8).map(where).collect()
row = frame.selectExpr("count(*)", "count(distinct lsn)").first()
print(json.dumps({
    "rows": list(row), "tasks": frame.rdd.getNumPartitions(), "shuffle": spark.conf.get("spark.sql.shuffle.partitions"),
    "executors": len({each[0] for each in found}), "pythons": sorted({each[1] for each in found}),
}))
"""
)
REFUSED = (
    SESSION
    + """
try:
    session(sys.argv[1])
except rumq.table.errors.WrongWorker as fault:
    print(fault)
"""
)
STREAM = (
    SESSION
    + """
master, address, out, checkpoint = sys.argv[1:]
spark = session(master)
frame = spark.readStream.format("rumq").option("maxOffsetsPerTrigger", "700").option("broker", address).load()
frame = frame.select("partition", "lsn", "topic", "payload")
rows = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
told = None
for attempt in range(5):
    query = rows.trigger(processingTime="0 seconds").start(out)
    try:
        while not query.awaitTermination(0.05):
            batch = (query.lastProgress or {}).get("batchId")
            if batch != told:
                told = batch
                print(batch, flush=True)
    except Exception as fault:
        # Spark gives a Python process ten seconds to start, and a busy machine takes longer.
        if "Timed out while waiting for the Python worker" not in str(query.exception()) + str(fault):
            raise
"""
)
LAST = (
    SESSION
    + """
master, address, out, checkpoint = sys.argv[1:]
spark = session(master)
(
    spark.readStream.format("rumq").option("broker", address).load().select("partition", "lsn", "topic", "payload")
    .writeStream.format("parquet").option("checkpointLocation", checkpoint).trigger(availableNow=True).start(out)
).awaitTermination()
rows = spark.read.parquet(out).where("topic like 'plant/%'")
rows = rows.selectExpr("topic", "cast(payload as string)", "lsn", "partition")
print(json.dumps([list(row) for row in rows.collect()]))
"""
)


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    made = Standalone(tmp_path_factory.mktemp("standalone"))
    try:
        made.start(workers=2, cores=2)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def big_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Enough records of one partition that each core of the cluster gets a task. Its Flight address."""
    root = tmp_path_factory.mktemp("big") / "data"
    store = store_at(str(root), segment_bytes_max=1 << 24)
    publisher = Publisher(store.own[0])
    for _ in range(100):
        publisher.chunk([message("plant/7", b"x")] * 10_000)
    store.close()
    with served(str(root)) as server:
        yield server.address


def archive_of(folder: Path) -> str:
    """As venv-pack makes one, of this environment: its Python, which executors do not find by themselves."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / name
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{os.getcwd()}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    with tarfile.open(f"{folder}.tar.gz", "w:gz") as archive:
        archive.add(folder / "bin", "bin")
    program.unlink()
    return f"{folder}.tar.gz"


def test_executors_without_rumq_are_told_when_the_session_starts(standalone: Standalone) -> None:
    said = Driver(REFUSED, standalone.master, PYSPARK_PYTHON="/usr/bin/python3").result()
    assert "a Python without it (No module named 'rumq')" in said or "No module named 'pyspark" in said, said
    assert "docs/guides/spark-cluster.md" in said


@pytest.mark.parametrize("packed", [False, True], ids=["path", "archive"])
def test_every_core_of_the_cluster_has_a_task(
    standalone: Standalone, big_log: str, tmp_path: Path, packed: bool
) -> None:
    environment = archive_of(tmp_path / "environment") if packed else ""
    done = json.loads(Driver(BATCH, standalone.master, big_log, environment).result())
    assert done["rows"] == [1_000_000, 1_000_000]
    assert done["tasks"] == 4, "two workers of two cores, whatever the driver's machine has"
    assert done["executors"] == 2
    assert done["shuffle"] == "200", "Spark's own, because nobody has set it"


class Broker:
    """One broker that is killed and started again at the same Flight port."""

    def __init__(self, folder: Path) -> None:
        self._rumqd = Rumqd(folder, "--set", "flight.port=-1", "--set", "flight.host=127.0.0.1")
        self._rumqd.start()
        port = self._rumqd.event("listener.bound", number=2)["port"]
        self._rumqd.flags = ("--set", f"flight.port={port}", "--set", "flight.host=127.0.0.1")
        self.flight = f"grpc://127.0.0.1:{port}"

    @property
    def port(self) -> int:
        return self._rumqd.address.port

    def kill(self) -> None:
        self._rumqd.kill()
        self._rumqd.start()
        self._rumqd.event("listener.bound", number=2)

    def end(self) -> None:
        self._rumqd.end()


class Three:
    """A cluster of three nodes, of which one is killed. It comes back with another Flight port, so it is not asked."""

    def __init__(self, folder: Path) -> None:
        self._live = LiveCluster(folder, settings=("flight.port=-1", "flight.host=127.0.0.1"))
        self._live.start()
        try:
            ports = [until(lambda node=node: flight_port(node.logs), node.last_words) for node in self._live.nodes]
        except BaseException:
            self.end()
            raise
        self.flight = ",".join(f"grpc://127.0.0.1:{port}" for port in ports)

    @property
    def port(self) -> int:
        return self._live.addresses[0][1]

    def kill(self) -> None:
        os.kill(self._live.nodes[2].pid, signal.SIGKILL)

    def end(self) -> None:
        self._live.stop()


def flight_port(logs: Path) -> int:
    """0 before it listens."""
    bound = [json.loads(line) for line in logs.read_text().splitlines() if '"listener.bound"' in line]
    return int(next((event["port"] for event in reversed(bound) if event["protocol"] == "flight"), 0))


TOPICS = [f"plant/{n}" for n in range(4)]


def publish(port: int, first: int, count: int) -> None:
    """The same numbers to each topic."""
    lines = b"".join(b"%07d\n" % n for n in range(first, first + count))
    for topic in TOPICS:
        sent = rumqd("pub", topic, "-l", "-q", "1", "--port", str(port), stdin=lines)
        assert sent.status == 0, sent.err


def batches_done(batches: Driver, count: int) -> None:
    for _ in range(count):
        assert batches.next_line().isdigit()


@pytest.mark.parametrize("made", [Broker, Three], ids=["one broker", "a cluster of three"])
def test_an_executor_the_driver_and_a_broker_are_killed_and_the_result_is_exact(
    standalone: Standalone, tmp_path: Path, made: Callable[[Path], Broker | Three]
) -> None:
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    with ExitStack() as ends:
        source = made(tmp_path / "source")
        ends.callback(source.end)
        arguments = (standalone.master, source.flight, out, checkpoint)
        publish(source.port, 0, 1500)
        first = Driver(STREAM, *arguments)
        ends.callback(first.kill)
        batches_done(first, 2)
        killed = standalone.executors()[0]
        os.kill(killed, signal.SIGKILL)
        batches_done(first, 2)
        publish(source.port, 1500, 500)
        first.kill()

        second = Driver(STREAM, *arguments)
        ends.callback(second.kill)
        batches_done(second, 2)
        source.kill()
        publish(source.port, 2000, 500)
        batches_done(second, 2)
        second.kill()

        rows = json.loads(Driver(LAST, *arguments).result())
    assert sorted((topic, int(n)) for topic, n, _, _ in rows) == [(t, n) for t in TOPICS for n in range(2500)]
    assert len({(partition, lsn) for _, _, lsn, partition in rows}) == len(rows)
