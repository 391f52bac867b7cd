"""Records of one site as messages for another: what has been there is left out, the rest is tagged and renamed.

By columns of Arrow, without Python per row. The same records give the same messages, however they are cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

VIA = "rumq-via"  # user property: a site that the message has come through, one for each
STATE_TOPICS = "rumq/mirror/"  # positions of mirrors, which are each site's own
COLUMNS = (
    "topic", "payload", "retain", "properties", "content_type", "response_topic", "correlation_data",
    "message_expiry", "payload_format",
)  # fmt: skip
PAIR = pa.struct([("key", pa.string()), ("value", pa.string())])


def mirrored(batch: pa.RecordBatch, source: str, target: str, prefix: str = "") -> pa.RecordBatch:
    """batch: of `COLUMNS`; source, target: names of the sites; prefix: before each topic"""
    wanted = np.flatnonzero(~have_been(batch, target) & ~is_state(batch))
    if len(wanted) < batch.num_rows:
        batch = batch.take(pa.array(wanted))
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns["properties"] = tagged(columns["properties"], VIA, source)
    if prefix:
        columns["topic"] = pc.binary_join_element_wise(prefix, columns["topic"].cast(pa.string()), "")
    return pa.RecordBatch.from_pydict(columns)


def have_been(batch: pa.RecordBatch, site: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """By row, whether it has come through a site."""
    found = np.zeros(batch.num_rows, bool)
    properties = batch.column("properties")
    pairs = pc.list_flatten(properties)
    rows = pc.list_parent_indices(properties)
    is_tag = pc.and_(pc.equal(pairs.field(0), VIA), pc.equal(pairs.field(1), site))
    found[rows.filter(is_tag).to_numpy(zero_copy_only=False)] = True
    return found


def is_state(batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    topics = batch.column("topic").cast(pa.string())
    return np.asarray(pc.starts_with(topics, STATE_TOPICS).to_numpy(zero_copy_only=False), bool)


def tagged(properties: pa.Array, key: str, value: str) -> pa.Array:
    """Each row's properties with one more behind them."""
    count = len(properties)
    lengths = pc.fill_null(pc.list_value_length(properties), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = pc.list_flatten(properties)
    ends = np.cumsum(lengths)
    tag = pa.array([{"key": key, "value": value}], PAIR)
    fields = [pairs.field(0).cast(pa.string()), pairs.field(1).cast(pa.string())]
    pool = pa.concat_arrays([pa.StructArray.from_arrays(fields, ["key", "value"]), tag])
    order = np.insert(np.arange(len(pairs)), ends, len(pairs))
    offsets = np.concatenate(([0], ends + np.arange(1, count + 1))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pool.take(pa.array(order)))
