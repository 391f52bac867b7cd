"""`rumqd log export`: records as JSON lines or as a Parquet file, written completely or not at all."""

import base64
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, TypedDict

from commitlog import Gap
from commitlog.disk.files import private_file
from commitlog.read.partition_view import PartitionView
from rumq.cli.data.log_printing import first_lsn, open_log, records
from rumq.cli.message_format import Shown
from rumq.errors import RumqError
from rumq.terminal.progress import Progress

ROWS_A_GROUP = 65_536


class ExportedRecord(TypedDict):
    """A record as an object of JSON. payload: text if it is UTF-8, otherwise base64, as `encoding` says"""

    topic: str
    topic_offset: int | None
    partition: str | None
    lsn: int | None
    time: str | None
    qos: int
    retain: bool
    payload: str
    encoding: str
    properties: Mapping[str, object]


def export(
    data: str,
    topic_filter: str,
    start: str,
    until: str | None,
    to: str,
    *,
    parquet: bool,
    progress: bool | None = None,
) -> int:
    """Write the records; returns 1 if some could not be read, and prints these on standard error.

    to: a path, or "-" for standard output. raises: RumqError"""
    gaps: list[str] = []
    if parquet and to == "-":
        raise RumqError("a Parquet file needs a name: give --to FILE")
    bounds = bounds_of(data, topic_filter, start, until)
    total = sum(max(0, stop - first) for _, first, stop in bounds)
    with Progress("export", total, "records", is_on=progress) as bar:
        rows = exported_rows(bounds, topic_filter, gaps, bar.advance)
        if to == "-":
            write_lines(rows, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            write_atomically(to, lambda out: (write_parquet if parquet else write_lines)(rows, out))
    for gap in gaps:
        print(f"rumqd log: {gap}", file=sys.stderr)
    return 1 if gaps else 0


def write_atomically(path: str, write: Callable[[BinaryIO], None]) -> None:
    """Write and sync a temporary file, then rename it."""
    temporary = f"{path}.new"
    try:
        with private_file(temporary) as out:
            write(out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except PermissionError:  # of reading, too; main() explains it
        raise
    except OSError as fault:
        raise RumqError(f"cannot write {path}: {fault.strerror or fault}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def bounds_of(data: str, topic_filter: str, start: str, until: str | None) -> list[tuple[PartitionView, int, int]]:
    """(partition, first lsn, end) of each."""
    found = []
    for view in open_log(data).partitions():
        stop = view.end_lsn if until is None else min(view.end_lsn, first_lsn(view, topic_filter, until))
        found.append((view, first_lsn(view, topic_filter, start), stop))
    return found


def exported_rows(
    bounds: list[tuple[PartitionView, int, int]],
    topic_filter: str,
    gaps: list[str],
    advance: Callable[[int], None],
) -> Iterator[ExportedRecord]:
    """Each record of each partition in its order. advance: told of records that were examined"""
    for view, first, stop in bounds:
        for found in view.chunks(first, stop):
            if isinstance(found, Gap):
                gaps.append(f"{view.name}: records {found.base_lsn} to {found.next_lsn - 1}: {found.why}")
                continue
            yield from (row(shown) for shown in records(view, found, topic_filter) if (shown.lsn or 0) < stop)
            advance(found.count)


def row(shown: Shown) -> ExportedRecord:
    payload, encoding = as_text(shown.payload)
    properties = {
        name: list(as_text(value)) if isinstance(value, bytes) else value for name, value in shown.properties.items()
    }
    return {
        "topic": shown.topic, "topic_offset": shown.offset, "partition": shown.partition, "lsn": shown.lsn,
        "time": shown.time, "qos": shown.qos, "retain": shown.retain, "payload": payload, "encoding": encoding,
        "properties": properties,
    }  # fmt: skip


def as_text(data: bytes) -> tuple[str, str]:
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"


def write_lines(rows: Iterator[ExportedRecord], out: BinaryIO) -> None:
    for one in rows:
        out.write(json.dumps(one, ensure_ascii=False).encode() + b"\n")


def write_parquet(rows: Iterator[ExportedRecord], out: BinaryIO) -> None:
    """Payloads as bytes, properties as JSON text, times as timestamps of µs in UTC."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise RumqError(
            "a Parquet file needs pyarrow, which is not installed: pip install pyarrow, or export to a .jsonl file"
        ) from None
    schema = pa.schema(
        [
            ("topic", pa.string()), ("topic_offset", pa.int64()), ("partition", pa.string()), ("lsn", pa.int64()),
            ("time", pa.timestamp("us", "UTC")), ("qos", pa.int8()), ("retain", pa.bool_()),
            ("payload", pa.binary()), ("properties", pa.string()),
        ]
    )  # fmt: skip
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        group: list[dict[str, object]] = []
        for one in rows:
            group.append(as_columns(one))
            if len(group) == ROWS_A_GROUP:
                writer.write_table(pa.Table.from_pylist(group, schema))
                group.clear()
        writer.write_table(pa.Table.from_pylist(group, schema))


def as_columns(one: ExportedRecord) -> dict[str, object]:
    from datetime import datetime

    payload = one["payload"].encode() if one["encoding"] == "utf-8" else base64.b64decode(one["payload"])
    properties = json.dumps(one["properties"]) if one["properties"] else None
    return {
        **one, "payload": payload, "properties": properties,
        "time": datetime.fromisoformat((one["time"] or "").replace("Z", "+00:00")),
    }  # fmt: skip
