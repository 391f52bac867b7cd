"""Records as a function gets them, and its results as messages: columns of Arrow, checked, renamed and tagged.

No Python per row. Knows no process and no broker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rumq.flight.schema import NAMES, schema_of
from rumq.functions.rules import STATE_TOPICS, VIA
from rumq.mirror.mirrored_rows import PAIR, have_been, tagged
from rumq.mirror.mirrored_rows import VIA as VIA_PROPERTY

SCHEMA = schema_of(NAMES, "array")  # of what a function gets: that of `rumq.read`
# What a message has of a result, and the type that each is cast to.
TYPES = {
    "topic": pa.string(), "payload": pa.binary(), "retain": pa.bool_(), "properties": pa.list_(PAIR),
    "content_type": pa.string(), "response_topic": pa.string(), "correlation_data": pa.binary(),
    "message_expiry": pa.int64(), "payload_format": pa.int8(),
}  # fmt: skip
NEEDED = ("topic", "payload")


class WrongResult(Exception):
    """A function returned something that is no batch of messages. A sentence"""


def for_function(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Without state topics, and without what has come through this function before."""
    topics = batch.column("topic").cast(pa.string())
    is_state = np.asarray(pc.starts_with(topics, STATE_TOPICS).to_numpy(zero_copy_only=False), bool)
    wanted = np.flatnonzero(~is_state & ~have_been(batch, f"{VIA}{name}"))
    return batch if len(wanted) == batch.num_rows else batch.take(pa.array(wanted))


def messages_of(result: Any) -> pa.RecordBatch:
    """The columns of a result that a message has; others, such as `ts` and `lsn`, are left out. raises: WrongResult"""
    if isinstance(result, pa.Table):
        result = result.combine_chunks().to_batches()
        result = result[0] if result else pa.RecordBatch.from_pylist([], schema_of(NEEDED, "array"))
    if not isinstance(result, pa.RecordBatch):
        raise WrongResult(f"it returned {type(result).__name__}: expected a pyarrow.RecordBatch or Table")
    names = result.schema.names
    if missing := [each for each in NEEDED if each not in names]:
        raise WrongResult(f"its result has no column {missing[0]!r}; it has {', '.join(names) or 'none'}")
    columns = {}
    for name, kind in TYPES.items():
        if names.count(name) > 1:
            raise WrongResult(f"its result has the column {name!r} twice")
        if name in names:
            column = result.column(name)
            try:
                columns[name] = column.cast(kind) if column.type != kind else column
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise WrongResult(f"its column {name!r} is {column.type}: expected {kind}") from None
    if nulls := columns["topic"].null_count:
        raise WrongResult(f"{nulls} rows of its result have no topic")
    return pa.RecordBatch.from_pydict(columns)


def derived(messages: pa.RecordBatch, prefix: str, name: str) -> pa.RecordBatch:
    """Messages as they are published: the prefix before their topics, and the function in a user property."""
    columns = {each: messages.column(each) for each in messages.schema.names}
    columns["topic"] = pc.binary_join_element_wise(prefix, columns["topic"].cast(pa.string()), "")
    empty = pa.array([None] * messages.num_rows, pa.list_(PAIR))
    columns["properties"] = tagged(columns.get("properties", empty), VIA_PROPERTY, f"{VIA}{name}")
    return pa.RecordBatch.from_pydict(columns)


def as_bytes(batch: pa.RecordBatch) -> bytes:
    """A batch as a stream of Arrow IPC."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def as_batch(data: bytes) -> pa.RecordBatch:
    """raises: pa.ArrowInvalid"""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


def no_rows() -> pa.RecordBatch:
    """A batch that a function gets, without rows."""
    return pa.RecordBatch.from_pylist([], SCHEMA)
