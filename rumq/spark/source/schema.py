"""The columns of format "rumq" as types of Spark, by option. No session is needed."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rumq.table.errors import BadColumn
from rumq.table.options import TableOptions, near


def pairs_of(value: DataType) -> ArrayType:
    return ArrayType(StructType([StructField("key", StringType()), StructField("value", value)]))


PROPERTIES: dict[str, dict[str, DataType]] = {
    "array": {"properties": pairs_of(StringType())},
    "map": {"properties": MapType(StringType(), StringType())},
    "none": {},
}
HEAD: dict[str, DataType] = {
    "topic": StringType(),
    "topic_offset": LongType(),
    "lsn": LongType(),
    "partition": StringType(),
    "ts": TimestampType(),
    "payload": BinaryType(),
    "qos": ByteType(),
    "retain": BooleanType(),
    "client_id": StringType(),
}
MQTT_5: dict[str, DataType] = {
    "content_type": StringType(),
    "response_topic": StringType(),
    "correlation_data": BinaryType(),
    "message_expiry": LongType(),
    "payload_format": ByteType(),
}
KAFKA: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": StringType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
}


def types_of(options: TableOptions) -> dict[str, DataType]:
    """Every column, in order."""
    if options.style == "kafka":
        return KAFKA if options.properties == "none" else KAFKA | {"headers": pairs_of(BinaryType())}
    return HEAD | PROPERTIES[options.properties] | MQTT_5


def schema_of(options: TableOptions) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types_of(options).items()])


def columns_of(options: TableOptions, schema: StructType) -> dict[str, str]:
    """Name in the schema -> name of its maker (rumq.table.arrow.columns). raises: BadColumn for an unknown name"""
    known = types_of(options)
    for field in schema.fields:
        if field.name not in known:
            raise BadColumn(field.name, f"no such column; {near(field.name, {name: name for name in known})}")
        if (kind := known[field.name].simpleString()) != field.dataType.simpleString():
            raise BadColumn(field.name, f"expected {kind}, as the log has it: cast it in a select")
    made = {"properties": "properties_map"} if options.properties == "map" else {}
    return {name: made.get(name, name) for name in schema.names}
