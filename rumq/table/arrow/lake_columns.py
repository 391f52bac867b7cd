"""Rows of the lake as the columns of format "rumq", equal to those of the log. docs/guides/lake.md, "Columns"."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rumq.table.arrow.columns import LOG_APPEND_TIME, as_map

NEEDS = {
    "properties_map": "properties", "headers": "properties", "key": "client_id", "value": "payload", "offset": "lsn",
    "timestamp": "ts", "timestampType": "lsn",
}  # fmt: skip


def needed(column: str) -> str:
    """The lake's column for one of `columns.MAKERS`."""
    return NEEDS.get(column, column)


def array_of(table: pa.Table, column: str) -> pa.Array:
    """One column, by its name in `columns.MAKERS`."""
    if (make := MAKERS.get(column)) is not None:
        return make(table)
    return whole(table, needed(column))


def whole(table: pa.Table, name: str) -> pa.Array:
    found = table.column(name).combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def pairs(table: pa.Table) -> tuple[npt.NDArray[np.int32], pa.Array, pa.Array]:
    """User properties as offsets, keys and values; null in the lake means none."""
    lists = whole(table, "properties")
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    flat = lists.flatten()
    return offsets, flat.field("key"), flat.field("value")


def properties(table: pa.Table) -> pa.Array:
    offsets, keys, values = pairs(table)
    made = pa.StructArray.from_arrays([keys, values], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(offsets), made)


def headers(table: pa.Table) -> pa.Array:
    offsets, keys, values = pairs(table)
    made = pa.StructArray.from_arrays([keys, values.cast(pa.binary())], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(offsets), made)


MAKERS: dict[str, Callable[[pa.Table], pa.Array]] = {
    "properties": properties,
    "properties_map": lambda table: as_map(*pairs(table)),
    "headers": headers,
    "key": lambda table: whole(table, "client_id").cast(pa.binary()),
    "timestampType": lambda table: pa.repeat(pa.scalar(LOG_APPEND_TIME, pa.int32()), len(table)),
}
