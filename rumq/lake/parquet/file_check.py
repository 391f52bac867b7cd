"""Checks the content of a Parquet file: rows, lsns and payloads, in any order."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rumq.lake.kernels import walking
from rumq.lake.piece import lsn_digest

TOPIC_CHARACTERS_MAX = 200  # of a topic in the manifest
TOO_LONG = "\U0010ffff" * (TOPIC_CHARACTERS_MAX + 1)


class Content(NamedTuple):
    """rows, and the digests of the records: sums, modulo 2**64, independent of order (`walking.digest`)"""

    rows: int
    lsn: int
    payload: int


class RowBounds(NamedTuple):
    """Bounds of times (µs) and topics of all records, for readers that skip files. -1, "": unknown"""

    first_ts: int
    last_ts: int
    first_topic: str
    last_topic: str


class FileCheck(NamedTuple):
    """Content of a file. base_lsn, next_lsn: -1 if it is empty; repeated: lsns that occur more than once; bounds: from
    its statistics"""

    bytes: int
    crc: int
    content: Content
    base_lsn: int
    next_lsn: int
    repeated: int
    bounds: RowBounds


def examined(raw: bytes | pa.Buffer) -> FileCheck:
    """raw: the bytes of a Parquet file. raises: pa.ArrowInvalid, OSError if they are invalid"""
    table = table_of(raw, ["lsn", "payload"])
    lsns = table.column("lsn").to_numpy()
    ordered = np.sort(lsns)
    first, last = (int(ordered[0]), int(ordered[-1])) if len(ordered) else (-1, -2)
    repeated = len(ordered) - 1 - int(np.count_nonzero(np.diff(ordered))) if len(ordered) else 0
    return FileCheck(len(raw), crc32(raw), content_of(table), first, last + 1, repeated, bounds_of(raw))


def table_of(raw: bytes | pa.Buffer, columns: list[str] | None = None) -> pa.Table:
    """The rows of a Parquet file in memory. raises: pa.ArrowInvalid, OSError if they are invalid"""
    # Not `pq.read_table`: threads of its scan are still there when it returns, and a process that ends then may abort
    # (https://github.com/apache/arrow/issues/39862).
    return pq.ParquetFile(pa.BufferReader(raw), pre_buffer=False).read(columns=columns, use_threads=False)


def bounds_of(raw: bytes | pa.Buffer) -> RowBounds:
    """raw: the bytes of a file of the lake, with at least one row"""
    found = pq.ParquetFile(pa.BufferReader(raw)).metadata
    topics, times = [], []
    for number in range(found.num_row_groups):
        group = found.row_group(number)
        ts, topic = group.column(0).statistics, group.column(1).statistics
        times += [ts.min_raw, ts.max_raw]
        # There are no statistics for topics of kilobytes.
        topics += [topic.min, topic.max] if topic is not None and topic.has_min_max else ["", TOO_LONG]
    last = max(topics)
    # A truncated topic is less than the whole one, which is valid for the lower bound only.
    return RowBounds(
        min(times),
        max(times),
        min(topics)[:TOPIC_CHARACTERS_MAX],
        last if len(last) <= TOPIC_CHARACTERS_MAX else "",
    )


def content_of(table: pa.Table) -> Content:
    lsns = np.ascontiguousarray(table.column("lsn").to_numpy(), np.int64)
    payload, at = 0, 0
    for array in table.column("payload").chunks:
        bounds = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
        bounds = bounds.astype(np.int64)
        data = array.buffers()[2]
        data = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        payload += walking.digest(lsns[at : at + len(array)], bounds[:-1], bounds[1:], data)
        at += len(array)
    return Content(len(lsns), lsn_digest(lsns), payload % 2**64)
