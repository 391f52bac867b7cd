"""A streaming query that publishes with `once`: each row once, over tasks and drivers that die.

docs/guides/spark.md."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker_process import Rumqd
from tests.commitlog.records import mark
from tests.spark.logs import Publisher, message, store_at

pytestmark = pytest.mark.spark
ROWS, PARTITIONS = 800, 2


def write_log(root: str, rows: int = ROWS) -> None:
    """Numbered messages in two partitions, so a batch is two tasks."""
    store = store_at(root, partitions=PARTITIONS)
    for n, partition in enumerate(store.own):
        publisher = Publisher(partition)
        for at in range(n * rows // 2, (n + 1) * rows // 2, 100):
            publisher.chunk([message("t", b"%d" % row) for row in range(at, at + 100)])
        mark(partition)
    store.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Rumqd]:
    """Its windows are small, so that a batch has several."""
    config = tmp_path / "config.toml"
    config.write_text("[mqtt]\nreceive_maximum = 60\n")
    made = Rumqd(tmp_path / "broker", "--config", str(config))
    made.start()
    yield made
    made.end()


def start(spark: Any, broker: Rumqd, root: str, folder: Path, **options: str) -> Any:
    return (
        spark.readStream.format("rumq")
        .options(maxOffsetsPerTrigger="400", minPartitions="2")
        .load(root)
        .selectExpr("concat('copy/', lsn % 3) as topic", "payload")
        .writeStream.format("rumq-crashing")
        .options(broker=f"mqtt://{broker.address.host}:{broker.address.port}", once="true", crash=f"{folder}/crash")
        .options(checkpointLocation=str(folder / "checkpoint"), **options)
        .trigger(availableNow=True)
        .start()
    )


def assert_each_row_once(spark: Any, broker: Rumqd, rows: int = ROWS) -> None:
    broker.stop()
    copies = spark.read.format("rumq").option("subscribe", "copy/#").load(str(broker.data)).collect()
    times = Counter(int(row.payload) for row in copies)
    assert times == Counter(range(rows))
    # What is retained and no probe: the last mark of each partition says that it is done.
    state = spark.read.format("rumq").option("subscribe", "rumq/spark/#").load(str(broker.data))
    marks = {row.topic: row.payload for row in state.where("retain").orderBy("lsn").collect()}
    assert len(marks) == PARTITIONS and all(b'"state": "done"' in payload for payload in marks.values())


def test_each_row_once_over_tasks_that_die(spark: Any, broker: Rumqd, tmp_path: Path) -> None:
    """The query is started again from its checkpoint after each."""
    from pyspark.errors import StreamingQueryException

    from tests.spark.sink import crashing_sink

    root = str(tmp_path / "log")
    write_log(root)
    spark.dataSource.register(shipped(crashing_sink.CrashingSource, crashing_sink))
    for size in (300, 1_000):
        flag = tmp_path / f"crash-{size}"
        flag.touch()
        query = start(spark, broker, root, tmp_path)
        with pytest.raises(StreamingQueryException, match=r"crashed|exited|EOF"):
            query.awaitTermination()
        assert not flag.exists()
    query = start(spark, broker, root, tmp_path)
    query.awaitTermination()
    assert_each_row_once(spark, broker)


def shipped(source: type, module: Any) -> type:
    """Have Spark send the class itself to its workers, which do not have the tests."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)
    return source


DRIVER = """
import sys
from pathlib import Path
import rumq.spark
from tests.broker_process import Address
from tests.spark.sink import crashing_sink
from tests.spark.sink.test_exactly_once_query import shipped, start

class At:
    address = Address(sys.argv[1], int(sys.argv[2]))

spark = rumq.spark.session("once", "local[2,4]", spark_ui_enabled="false", spark_log_level="OFF")
spark.dataSource.register(shipped(crashing_sink.CrashingSource, crashing_sink))
query = start(spark, At, sys.argv[3], Path(sys.argv[4]))
print("started", flush=True)
query.awaitTermination()
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_each_row_once_over_drivers_brokers_and_tasks_that_die(spark: Any, broker: Rumqd, tmp_path: Path) -> None:
    """kill -9 of the driver in the middle of a batch, three times; Spark does tasks again by itself (local[2,4]);
    the broker is killed between."""
    rows = 8_000
    root = str(tmp_path / "log")
    write_log(root, rows)
    for size in (100, 300, 600, 900, 1_200):
        (tmp_path / f"crash-{size}").touch()
    done = 0
    for lives in (1, 3, 6, 0):
        command = [sys.executable, "-c", DRIVER, *map(str, broker.address), root, str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, env=environment) as driver:
            assert driver.stdout is not None and driver.stdout.readline() == b"started\n"
            if not lives:
                assert driver.wait(300) == 0
                break
            commits = tmp_path / "checkpoint" / "commits"
            while len(list(commits.glob("[0-9]*"))) < done + lives:
                assert driver.poll() is None
            # A batch has just ended, and the next one has begun.
            os.killpg(driver.pid, signal.SIGKILL)
        done = len(list(commits.glob("[0-9]*")))
        broker.kill()
        broker.start()
    assert not list(tmp_path.glob("crash-*"))
    assert_each_row_once(spark, broker, rows)
