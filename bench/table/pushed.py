"""What a condition on topic, ts or lsn spares a batch query of the log: `python -m bench.table.pushed DIR`.

Bytes that are read of segments and indexes, and the processor time without Spark, with the condition and without it."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, LessThan, StringStartsWith
from pyspark.sql.types import StructType

from bench.table.readings import write
from commitlog.disk.files import RealFiles
from rumq.spark.source.data_source import RumqReader
from rumq.spark.source.schema import schema_of
from rumq.table import partition_ranges
from rumq.table.options import parse

RECORDS, TOPICS = 2_000_000, 100_000
COLUMNS = ("topic", "lsn", "ts", "payload")


class Counting(RealFiles):
    total = 0

    def read(self, handle: int, position: int, size: int) -> bytes:
        found = super().read(handle, position, size)
        Counting.total += len(found)
        return found


def measured(root: str, conditions: list[Any]) -> tuple[int, int, float]:
    """rows, bytes that were read, seconds of processor."""
    options = parse({"path": root, "lake": "none"}, now_us=0)
    schema = schema_of(options)
    Counting.total, start = 0, time.process_time()
    reader = RumqReader(options, StructType([schema[name] for name in COLUMNS]))
    assert not reader.pushFilters(conditions)
    rows = sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))
    return rows, Counting.total, time.process_time() - start


def main(root: str) -> None:
    if not os.path.exists(root):
        write(root, RECORDS, TOPICS)
    partition_ranges.RealFiles = Counting  # type: ignore[attr-defined]
    view = partition_ranges.maybe_view(root, "main/g1/p0")
    assert view is not None
    topic = view.names()[0][12_345].decode()
    first, last = view.segments()[0].first_ts, view.last_ts
    middle = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=(first + last) // 2)
    hundredth = timedelta(microseconds=(last - first) // 100)
    queries: dict[str, list[Any]] = {
        "everything": [],
        f"topic = '{topic}'": [EqualTo(("topic",), topic)],
        f"topic like '{topic[:-1]}%'": [StringStartsWith(("topic",), topic[:-1])],
        "a hundredth of the time": [
            GreaterThanOrEqual(("ts",), middle),
            LessThan(("ts",), middle + hundredth),
        ],
        "lsn < 1000": [LessThan(("lsn",), 1000)],
    }
    for name, conditions in queries.items():
        rows, size, took = measured(root, conditions)
        print(f"{name}: {rows} rows, {size / 1e6:.1f} MB read, {took:.2f} s of processor", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
