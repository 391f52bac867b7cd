"""The Spark source, measured: `python -m bench spark DIR [active] [latency] [history] [topic]`, all of them where none
is named. Rows a second from active segments to nowhere, how long a message takes from the log to a sink of a stream,
and history (bench/table/history.py). Writes its own logs in DIR, which must not exist."""

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

import rumq.spark
from bench.table.history import EIGHT, history, one_topic
from bench.table.spark_log import chunks_of, fill
from commitlog import OpenOptions, Partition, RealFiles, StoreLayout, StreamSpec, open_store

RECORDS = 4_000_000
MESSAGES, GAP_SECONDS = 300, 0.037


@dataclass
class Done(WriterCommitMessage):
    rows: int


class NotingWriter(DataSourceStreamArrowWriter):
    """Notes how old each payload is, which is a time in ns."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, iterator: Iterator[Any]) -> Done:
        ages = [time.time_ns() - int(payload) for batch in iterator for payload in batch.column("payload").to_pylist()]
        with open(self._path, "a") as file:
            file.writelines(f"{age}\n" for age in ages)
        return Done(len(ages))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None: ...

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None: ...


class Noting(DataSource):
    @classmethod
    def name(cls) -> str:
        return "noting"

    def streamWriter(self, schema: Any, overwrite: bool) -> NotingWriter:
        return NotingWriter(self.options["path"])


def throughput(spark: Any, root: str) -> None:
    fill(root, RECORDS)
    frames = {
        "8 columns": spark.read.format("rumq").load(root).select(*EIGHT),
        "8 columns, as schema": spark.read.format("rumq").schema(ddl(EIGHT)).load(root),
        "all 15 columns": spark.read.format("rumq").load(root),
        "topic and payload, as schema": spark.read.format("rumq").schema(ddl(["topic", "payload"])).load(root),
    }
    for name, frame in frames.items():
        best = 1e9
        for _ in range(3):
            start = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            best = min(best, time.perf_counter() - start)
        print(f"{name}: {RECORDS / best / 1e6:.2f} million rows/s, best of 3", flush=True)


def ddl(names: list[str]) -> str:
    from rumq.spark.source.schema import types_of
    from rumq.table.options import TableOptions

    kinds = types_of(TableOptions("."))
    return ", ".join(f"{name} {kinds[name].simpleString()}" for name in names)


def write(partition: Partition, payload: bytes) -> None:
    """One message a group, as a broker does that is not busy: the next group says that it is committed."""
    rows, frames, flags = chunks_of(partition, payload, 1)
    partition.append(bytearray(rows), frames, 1, flags, time.time_ns() // 1000)
    run(partition, partition.take_group())


def run(partition: Partition, group: Any) -> None:
    if group is not None:
        group.run()
        partition.complete(group)


def latency(spark: Any, root: str) -> None:
    spark.dataSource.register(Noting)
    store = open_store(
        RealFiles(),
        root,
        StoreLayout([StreamSpec("main", ("#",))], lambda f, t: True),
        OpenOptions(time.time_ns() // 1000),
        holder=f"pid {os.getpid()}\n",
    )
    notes = f"{root}.ages"
    query = (
        spark.readStream.format("rumq").schema("payload binary").load(root)
        .writeStream.format("noting").option("checkpointLocation", f"{root}.checkpoint").start(notes)
    )  # fmt: skip

    def publish() -> None:
        for _ in range(MESSAGES):
            write(store.own[0], b"%d" % time.time_ns())
            time.sleep(GAP_SECONDS)
        run(store.own[0], store.own[0].take_mark(time.time_ns() // 1000))

    writer = threading.Thread(target=publish)
    writer.start()
    writer.join()
    time.sleep(2)
    query.stop()
    store.close()
    ages = [int(line) / 1e6 for line in Path(notes).read_text().splitlines()]
    steady = statistics.quantiles(ages[len(ages) // 3 :], n=100)  # the first batches start workers
    print(f"latency: {len(ages)} of {MESSAGES}; p50 {steady[49]:.0f} ms, p90 {steady[89]:.0f}, p99 {steady[98]:.0f}")


def main(argv: Sequence[str]) -> int:
    if not argv or not set(argv[1:]) <= set(PARTS):
        print(f"bench spark: expected a directory to be made, and of {', '.join(PARTS)}", file=sys.stderr)
        return 2
    root, *parts = argv
    Path(root).mkdir()
    spark = rumq.spark.session("bench", "local[2]", spark_ui_enabled="false", spark_log_level="ERROR")
    for part in parts or PARTS:
        PARTS[part](spark, f"{root}/{part}")
    spark.stop()
    return 0


PARTS: dict[str, Callable[[Any, str], None]] = {
    "active": throughput,
    "latency": latency,
    "history": lambda spark, root: history(spark, root, ddl),
    "topic": one_topic,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
