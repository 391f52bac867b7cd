"""History, measured: `python -m bench spark DIR history`. The same records from the log, from the lake by format
"rumq", and by Spark's own Parquet scan, to nowhere; one topic of many; what exporting costs.

Ratios of one run: whatever else the machine does, it does to all of them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rumq.lake
import rumq.spark
from bench.table.readings import write
from commitlog import RealFiles
from rumq.lake.folder import LocalFolder
from rumq.lake.lake_reader import lake_at
from rumq.lake.parquet.export import Exporter

EIGHT = ["topic", "topic_offset", "lsn", "partition", "ts", "payload", "qos", "retain"]
RECORDS, TOPICS = 2_000_000, 1000
MANY_RECORDS, MANY_TOPICS = 10_000_000, 100_000  # as 100 million rows of a million topics, a tenth
RUNS = 6


def history(spark: Any, root: str, ddl: Callable[[list[str]], str]) -> None:
    """root: a folder to be made. ddl: names -> a schema"""
    data, lake = f"{root}/data", f"{root}/lake"
    write(data, RECORDS, TOPICS)
    export(data, lake)
    end = lake_at(lake).manifest.partition("main/g1/p0").next_lsn
    until = f'{{"main/g1/p0": {end}}}'

    def by_format(place: str, **options: str) -> Any:
        return spark.read.format("rumq").schema(ddl(EIGHT)).options(endingOffsets=until, **options).load(place)

    frames = {
        "Spark's own Parquet scan of the lake": spark.read.schema(ddl(EIGHT)).parquet(*rumq.lake.files(lake)),
        "rumq.spark.read": rumq.spark.read(spark, data, end={"main/g1/p0": end}, columns=EIGHT, lake=lake),
        "format rumq, sealed segments": by_format(data, lake="none"),
        "format rumq, from the lake": by_format(without_log(data), lake=lake),
    }
    best = dict.fromkeys(frames, 1e9)
    for _ in range(RUNS):
        for name, frame in frames.items():
            best[name] = min(best[name], seconds(frame))
    first = next(iter(best.values()))
    for name, took in best.items():
        print(f"{name}: {end / took / 1e6:.2f} million rows/s, {first / took:.2f} x the first", flush=True)


def seconds(frame: Any) -> float:
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def without_log(data: str) -> str:
    """A copy of a data directory of which retention took all that is finished."""
    from commitlog.format.manifest import Manifest

    copied = f"{data}-late"
    shutil.copytree(data, copied)
    directory = Path(copied, "main/g1/p0")
    *old, last = sorted(directory.glob("*.seg"))
    manifest = Manifest(RealFiles(), str(directory))
    manifest.rewrite([*manifest.load(), {"edit": "first", "lsn": int(last.name[:20])}])
    manifest.close()
    for path in old:
        path.unlink()
    return copied


def export(data: str, lake: str) -> None:
    start, before = time.perf_counter(), time.process_time()
    exporter = Exporter(RealFiles(), data, LocalFolder(lake))
    done = exporter.run()
    took, cpu = time.perf_counter() - start, time.process_time() - before
    exporter.close()
    print(
        f"export: {done.log_bytes / took / 1e6:.0f} MB/s of log; for each second of processor "
        f"{done.log_bytes / cpu / 1e6:.0f} MB, {done.rows / cpu / 1e6:.2f} million records; "
        f"Parquet / log {done.bytes / done.log_bytes:.3f}",
        flush=True,
    )


def one_topic(spark: Any, root: str) -> None:
    """How much of a lake Spark reads for one topic, as the lake is exported and merged."""
    data, lake = f"{root}/data", f"{root}/lake"
    write(data, MANY_RECORDS, MANY_TOPICS)
    export(data, lake)
    topic = f"plant/{4711 % 10}/device/4711"
    statistics = spark._jvm.org.apache.hadoop.fs.FileSystem
    for step in ("exported", "merged"):
        if step == "merged":
            exporter = Exporter(RealFiles(), data, LocalFolder(lake))
            exporter.merge(1 << 40)
            exporter.close()
        files = rumq.lake.files(lake)
        size = sum(os.path.getsize(path) for path in files)
        end = lake_at(lake).manifest.partition("main/g1/p0").next_lsn
        frame = rumq.spark.read(spark, data, topic, end={"main/g1/p0": end}, columns=["ts", "payload"], lake=lake)
        statistics.clearStatistics()
        took = seconds(frame)
        read = sum(each.getBytesRead() for each in statistics.getAllStatistics())
        print(
            f"one topic of {MANY_TOPICS:,} over {end:,} rows, {step} in {len(files)} files: {read:,} of {size:,} bytes "
            f"read, {100 * read / size:.2f} %, {took:.2f} s",
            flush=True,
        )
