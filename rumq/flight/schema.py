"""The columns of the log as Arrow types: those of the Spark source, under both of its names.

`tests/flight/test_schema.py` compares them with `rumq.spark.source.schema`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def pairs_of(value: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", value)]))


TS = pa.timestamp("us", "UTC")
HEAD = {
    "topic": pa.string(), "topic_offset": pa.int64(), "lsn": pa.int64(), "partition": pa.string(), "ts": TS,
    "payload": pa.binary(), "qos": pa.int8(), "retain": pa.bool_(), "client_id": pa.string(),
}  # fmt: skip
PROPERTIES = {"array": pairs_of(pa.string()), "map": pa.map_(pa.string(), pa.string())}
MQTT_5 = {
    "content_type": pa.string(), "response_topic": pa.string(), "correlation_data": pa.binary(),
    "message_expiry": pa.int64(), "payload_format": pa.int8(),
}  # fmt: skip
KAFKA = {
    "key": pa.binary(), "value": pa.binary(), "topic": pa.string(), "partition": pa.string(), "offset": pa.int64(),
    "timestamp": TS, "timestampType": pa.int32(), "headers": pairs_of(pa.binary()),
}  # fmt: skip
NAMES = (*HEAD, "properties", *MQTT_5)  # the default columns
ALL = tuple(dict.fromkeys((*NAMES, *KAFKA)))


def schema_of(columns: Sequence[str], properties: str) -> pa.Schema:
    """columns: of `ALL`; properties: "array" or "map", the type of that column"""
    types = HEAD | {"properties": PROPERTIES[properties]} | MQTT_5 | KAFKA
    return pa.schema([(name, types[name]) for name in columns])


def makers_of(columns: Sequence[str], properties: str) -> dict[str, str]:
    """Name in the schema -> name of its maker (rumq.table.arrow.columns)."""
    made = {"properties": "properties_map"} if properties == "map" else {}
    return {name: made.get(name, name) for name in columns}
