"""What a Parquet file holds, held against what it should: rows, lsns and payloads, in whatever order.

Knows no manifest and no log."""

from __future__ import annotations

from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rumq.lake.kernels import walking
from rumq.lake.piece import lsn_digest


class Content(NamedTuple):
    """rows, and the digests of the records: sums, modulo 2**64, that do not mind their order (`walking.digest`)"""

    rows: int
    lsn: int
    payload: int


class FileCheck(NamedTuple):
    """What a file is: its bytes, and what they decode to. base_lsn, next_lsn: -1 when it is empty; repeated: lsns
    that come more than once"""

    bytes: int
    crc: int
    content: Content
    base_lsn: int
    next_lsn: int
    repeated: int


def examined(raw: Any) -> FileCheck:
    """raw: the bytes of a Parquet file. raises: pa.ArrowInvalid, OSError when they are none"""
    table = pq.read_table(pa.BufferReader(raw), columns=["lsn", "payload"], use_threads=False)
    lsns = table.column("lsn").to_numpy()
    ordered = np.sort(lsns)
    first, last = (int(ordered[0]), int(ordered[-1])) if len(ordered) else (-1, -2)
    repeated = len(ordered) - 1 - int(np.count_nonzero(np.diff(ordered))) if len(ordered) else 0
    return FileCheck(len(raw), crc32(raw), content_of(table), first, last + 1, repeated)


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
