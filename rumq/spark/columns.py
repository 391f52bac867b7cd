"""Chunks of the log as Arrow columns: one pass over the row table for each column, no Python per message.

Only MQTT 5 properties are taken apart message by message, and only when a column of theirs is asked for.
docs/log-format.md, "Row" and "Frame". Knows no Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from commitlog import Chunk
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.properties import Properties, decode_properties
from rumq.mqtt.wire import Fields

ROW = np.dtype(
    [
        ("topic_id", "<u4"), ("frame_pos", "<u4"), ("topic_offset", "<u8"), ("ts_delta", "<u4"),
        ("payload_pos", "<u4"), ("pub_no", "<u4"), ("flags", "<u2"), ("zero", "<u2"),
    ]
)  # fmt: skip
RETAIN, V5, PROPERTIES = 4, 16, 32


class Columns:
    """The columns of one chunk. names: topic id -> topic, publisher number -> client id."""

    def __init__(
        self, chunk: Chunk, partition: str, names: tuple[dict[int, bytes], dict[int, bytes]], keep: Any | None
    ) -> None:
        """keep: a boolean a row, or None for all"""
        rows = np.frombuffer(chunk.rows, ROW)
        self._frames = np.frombuffer(chunk.frames, np.uint8)
        starts = rows["frame_pos"].astype(np.int64)
        ends = np.append(starts[1:], len(self._frames))
        lsns = np.arange(chunk.base_lsn, chunk.base_lsn + len(rows), dtype=np.int64)
        if keep is not None:
            rows, starts, ends, lsns = rows[keep], starts[keep], ends[keep], lsns[keep]
        self._rows, self._starts, self._ends, self._lsns = rows, starts, ends, lsns
        self._base_ts, self._partition, self._names = chunk.base_ts, partition, names
        self._properties: list[Properties | None] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def array(self, column: str) -> pa.Array:
        """One column by its name; KeyError for a name that there is not."""
        return MAKERS[column](self)

    def topic(self) -> pa.Array:
        return named(self._rows["topic_id"], self._names[0])

    def client_id(self) -> pa.Array:
        return named(self._rows["pub_no"], self._names[1])

    def topic_offset(self) -> pa.Array:
        return pa.array(self._rows["topic_offset"].astype(np.int64))

    def lsn(self) -> pa.Array:
        return pa.array(self._lsns)

    def partition(self) -> pa.Array:
        return pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(len(self), np.int32)), pa.array([self._partition])
        ).cast(pa.string())

    def ts(self) -> pa.Array:
        micros = self._rows["ts_delta"].astype(np.int64) + self._base_ts
        return pa.array(micros, pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))

    def payload(self) -> pa.Array:
        starts = self._starts + self._rows["payload_pos"]
        lengths = self._ends - starts
        offsets = np.zeros(len(self) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        total = int(offsets[-1])
        # Byte i of the output is byte i + (where its payload starts - where it goes) of the frames.
        shift = np.repeat(starts - offsets[:-1], lengths)
        data = self._frames[np.arange(total, dtype=np.int64) + shift] if total else np.zeros(0, np.uint8)
        return pa.Array.from_buffers(
            pa.binary(), len(self), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )

    def qos(self) -> pa.Array:
        return pa.array((self._rows["flags"] & 3).astype(np.int8))

    def retain(self) -> pa.Array:
        return pa.array((self._rows["flags"] & RETAIN).astype(bool))

    def properties(self) -> pa.Array:
        pairs = [
            [{"key": k, "value": v} for k, v in (p or {}).get("user_properties", [])] for p in self._decoded()
        ]
        return pa.array(pairs, pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))

    def property(self, name: str, kind: pa.DataType) -> pa.Array:
        return pa.array([None if p is None else p.get(name) for p in self._decoded()], kind)

    def _decoded(self) -> list[Properties | None]:
        if self._properties is None:
            frames = self._frames.tobytes() if len(self) else b""
            self._properties = [
                properties_of(frames, int(start), int(flags) & 3) if flags & PROPERTIES else None
                for start, flags in zip(self._starts, self._rows["flags"], strict=True)
            ]
        return self._properties


def properties_of(frames: bytes, start: int, qos: int) -> Properties:
    """The properties of an MQTT 5 frame."""
    at = start + 1
    while frames[at] >= 128:
        at += 1
    at += 1
    at += 2 + int.from_bytes(frames[at : at + 2], "big") + (2 if qos else 0)
    return decode_properties(Fields(frames[at:]), PacketType.PUBLISH)


def named(numbers: Any, names: dict[int, bytes]) -> pa.Array:
    """Numbers as names: each distinct one is looked up once."""
    distinct, inverse = np.unique(numbers, return_inverse=True)
    words = [names[n].decode() if n in names else None for n in distinct.tolist()]
    return pa.DictionaryArray.from_arrays(
        pa.array(inverse.astype(np.int32)), pa.array(words, pa.string())
    ).cast(pa.string())


MAKERS: dict[str, Callable[[Columns], pa.Array]] = {
    "topic": Columns.topic,
    "topic_offset": Columns.topic_offset,
    "lsn": Columns.lsn,
    "partition": Columns.partition,
    "ts": Columns.ts,
    "payload": Columns.payload,
    "qos": Columns.qos,
    "retain": Columns.retain,
    "client_id": Columns.client_id,
    "properties": Columns.properties,
    "content_type": lambda c: c.property("content_type", pa.string()),
    "response_topic": lambda c: c.property("response_topic", pa.string()),
    "correlation_data": lambda c: c.property("correlation_data", pa.binary()),
    "message_expiry": lambda c: c.property("message_expiry_interval", pa.int64()),
    "payload_format": lambda c: c.property("payload_format_indicator", pa.int8()),
}
