"""Encode Arrow record batches as PUBLISH packets, without Python per row. MQTT 5.0, 3.3.

The packets of a batch are joined columns: fixed header, topic, packet id, properties, payload. Packet ids are 0 until
the sender assigns them with `stamp`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rumq.mqtt.errors import TopicNameInvalid
from rumq.mqtt.topics import check_topic_name
from rumq.table.errors import BadRow

ORIGIN = "rumq-origin"
USER_PROPERTY = 0x26
# Column -> its property; numbers with their bytes. MQTT 5.0, 2.2.2.2.
NUMBERS = {"payload_format": (0x01, 1, 1), "message_expiry": (0x02, 4, 2**32 - 1)}
TEXTS = {"content_type": 0x03, "response_topic": 0x08, "correlation_data": 0x09}
TOPICS = ("topic", "response_topic")
TEXT_BYTES_MAX = 65_535
FRAME_BYTES_MAX = 268_435_455
BINARY = pa.binary()
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
NOTHING = pa.scalar(b"", BINARY)

Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class PublishEncoder:
    """Consecutive packets of `len(qos)` rows.

    data: their bytes; starts: start of each, and end of the last; ids_at: position of each packet id (rows of QoS 0
    have none); qos: of each
    """

    data: npt.NDArray[np.uint8]
    starts: Numbers
    ids_at: Numbers
    qos: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.qos)

    def behind(self, first: int) -> PublishEncoder:
        """The rows from `first` on, without a copy."""
        return PublishEncoder(self.data, self.starts[first:], self.ids_at[first:], self.qos[first:])

    def bytes_of(self, first: int, end: int) -> memoryview:
        """The packets of rows first..end."""
        return self.data[self.starts[first] : self.starts[end]].data

    def digest(self, first: int, end: int, before: int) -> int:
        """CRC-32 of rows first..end, continuing the digest `before`. Call it before `stamp`."""
        return crc32(self.bytes_of(first, end), before)

    def stamp(self, first: int, end: int, ids: Numbers, *, dup: bool = False) -> None:
        """Write packet ids into rows first..end, except those of QoS 0. dup: they may have been sent before"""
        numbered = np.flatnonzero(self.qos[first:end]) + first
        at = self.ids_at[numbered]
        self.data[at] = ids >> 8
        self.data[at + 1] = ids & 255
        if dup:
            self.data[self.starts[numbered]] |= 8


def encode(
    batch: pa.RecordBatch,
    *,
    topic: str | None = None,
    qos: int = 1,
    retain: bool = False,
    origin: str | None = None,
    first_row: int = 0,
    frame_bytes_max: int = FRAME_BYTES_MAX,
) -> PublishEncoder:
    """A record batch as packets. docs/guides/spark.md, "Publish".

    topic, qos, retain: defaults for missing columns; origin: prefix of row n's user property, before `first_row` + n
    frame_bytes_max: the broker's maximum packet size
    raises: BadRow
    """
    count = batch.num_rows
    columns = {name: batch.column(name) for name in batch.schema.names}
    topics = column_of_topics(columns, topic, count)
    levels = filled(columns, "qos", qos, count)
    if count and (bad := levels[(levels < 0) | (levels > 2)]).size:
        raise BadRow("qos", str(bad[0]), "0, 1 or 2")
    kept = filled(columns, "retain", retain, count)
    numbered = levels > 0
    properties = properties_of(columns, count, origin, first_row)
    properties_bytes = lengths(properties)
    payloads = column_of_bytes(columns.get("payload"), count)
    topic_bytes = lengths(topics)
    id_bytes = np.where(numbered, 2, 0)
    size_of_properties, size_bytes = variable_integers(properties_bytes)
    body = 2 + topic_bytes + id_bytes + size_bytes + properties_bytes + lengths(payloads)
    sizes, sizes_bytes = variable_integers(body)
    check_sizes(1 + sizes_bytes + body, min(frame_bytes_max, FRAME_BYTES_MAX))
    first = 0x30 | levels << 1 | kept
    head = np.column_stack((first, sizes, topic_bytes >> 8, topic_bytes & 255))
    used = np.column_stack((np.ones(count, bool), digits_used(sizes_bytes), np.ones((count, 2), bool)))
    ids = np.zeros((count, 2), np.int64)
    frames = join(
        bytes_column(head, used),
        topics,
        bytes_column(ids, np.column_stack((numbered, numbered))),
        bytes_column(size_of_properties, digits_used(size_bytes)),
        properties,
        payloads,
    )
    starts = offsets_of(frames)
    # A copy, because Arrow's memory is read-only.
    data = np.frombuffer(frames.buffers()[2], np.uint8)[: starts[-1]].copy() if count else np.empty(0, np.uint8)
    return PublishEncoder(data, starts, starts[:-1] + 3 + sizes_bytes + topic_bytes, levels.astype(np.uint8))


def column_of_topics(columns: Mapping[str, pa.Array], default: str | None, count: int) -> pa.Array:
    """raises: BadRow for a missing or invalid topic name"""
    if "topic" not in columns:
        found = pa.repeat(pa.scalar(default, pa.string()), count)
    else:
        found = columns["topic"] if default is None else pc.fill_null(columns["topic"], default)
    if found.null_count:
        raise BadRow("topic", "null", "a topic, in the column or as the option topic")
    check_topics("topic", found)
    return found.cast(BINARY)


def check_topics(column: str, found: pa.Array) -> None:
    for name in pc.unique(found).to_pylist():
        if name is not None:
            try:
                check_topic_name(name)
            except TopicNameInvalid as fault:
                raise BadRow(column, name, f"one that may be published to ({fault})") from None


def filled(columns: Mapping[str, pa.Array], name: str, default: int, count: int) -> Numbers:
    """A column of numbers or booleans, null replaced by the default."""
    if name not in columns:
        return np.full(count, int(default), np.int64)
    return np.asarray(pc.fill_null(columns[name].cast(pa.int64()), int(default)))


def column_of_bytes(column: pa.Array | None, count: int) -> pa.Array:
    """Text or bytes as bytes, empty for null."""
    if column is None:
        return pa.repeat(NOTHING, count)
    return pc.fill_null(column.cast(BINARY), b"")


def properties_of(columns: Mapping[str, pa.Array], count: int, origin: str | None, first_row: int) -> pa.Array:
    """The properties of each row, without their length. raises: BadRow"""
    parts = [number_property(columns[name], name) for name in NUMBERS if name in columns]
    parts += [text_property(columns[name], name) for name in TEXTS if name in columns]
    if "properties" in columns:
        parts.append(user_properties(columns["properties"]))
    if origin is not None:
        rows = pc.cast(pa.array(np.arange(first_row, first_row + count)), pa.string())
        says = join(pa.repeat(pa.scalar(origin.encode(), BINARY), count), rows.cast(BINARY))
        name = pa.repeat(pa.scalar(ORIGIN.encode(), BINARY), count)
        parts.append(pairs(name, says))
    return join(*parts) if parts else pa.repeat(NOTHING, count)


def number_property(column: pa.Array, name: str) -> pa.Array:
    number, size, most = NUMBERS[name]
    there = np.asarray(column.is_valid())
    values = filled({name: column}, name, 0, len(column))
    if (bad := values[(values < 0) | (values > most)]).size:
        raise BadRow(name, str(bad[0]), f"0 to {most}")
    digits = [np.full(len(values), number)] + [values >> 8 * n & 255 for n in reversed(range(size))]
    return bytes_column(np.column_stack(digits), np.repeat(there[:, None], size + 1, 1))


def text_property(column: pa.Array, name: str) -> pa.Array:
    check_text(name, column)
    if name in TOPICS:
        check_topics(name, column)
    there = np.asarray(column.is_valid())
    found = column_of_bytes(column, len(column))
    size = lengths(found)
    head = np.column_stack((np.full(len(size), TEXTS[name]), size >> 8, size & 255))
    return join(bytes_column(head, np.repeat(there[:, None], 3, 1)), found)


def user_properties(column: pa.Array) -> pa.Array:
    """Of a column of lists of (key, value), or of maps."""
    if pa.types.is_map(column.type):
        column = column.cast(PAIRS)
    keys, values = column.flatten().flatten()
    counts = pc.fill_null(pc.list_value_length(column), 0)
    for name, found in (("key", keys), ("value", values)):
        if found.null_count:
            raise BadRow("properties", f"a {name} that is null", "text")
        check_text("properties", found)
    ends = np.concatenate(([0], np.cumsum(np.asarray(counts)))).astype(np.int32)
    found = pairs(keys.cast(BINARY), values.cast(BINARY))
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), found), NOTHING)


def pairs(keys: pa.Array, values: pa.Array) -> pa.Array:
    size, other = lengths(keys), lengths(values)
    head = np.column_stack((np.full(len(size), USER_PROPERTY), size >> 8, size & 255))
    return join(bytes_column(head), keys, bytes_column(np.column_stack((other >> 8, other & 255))), values)


def check_text(name: str, column: pa.Array) -> None:
    """raises: BadRow for text that MQTT cannot encode. MQTT 5.0, 1.5.4"""
    if len(column) and (pc.max(pc.binary_length(column)).as_py() or 0) > TEXT_BYTES_MAX:
        raise BadRow(name, "a longer text", f"{TEXT_BYTES_MAX} bytes at most")
    if pa.types.is_string(column.type) and pc.any(pc.match_substring(column, "\0")).as_py():
        raise BadRow(name, "a text with U+0000", "one without")


def check_sizes(sizes: Numbers, frame_bytes_max: int) -> None:
    if sizes.size and (most := int(sizes.max())) > frame_bytes_max:
        allowed = f"with topic and properties at most {frame_bytes_max} bytes, the broker's maximum packet size"
        raise BadRow("payload", f"{most} bytes", allowed)


def variable_integers(values: Numbers) -> tuple[Numbers, Numbers]:
    """Variable byte integers as 4 columns of digits, and the number of valid ones. MQTT 5.0, 1.5.5"""
    used = np.asarray(np.searchsorted([128, 16_384, 2_097_152], values, "right") + 1, np.int64)
    more = np.where(np.arange(1, 4 + 1) < used[:, None], 128, 0)
    digits = np.column_stack([values >> 7 * n & 127 for n in range(4)])
    return (digits | more).astype(np.int64), used


def digits_used(used: Numbers) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.arange(4) < used[:, None]
    return found


def bytes_column(digits: Numbers, used: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """The valid digits of each row as a column of bytes."""
    count, width = digits.shape
    small = digits.astype(np.uint8)
    if used is None:
        ends = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    else:
        ends = np.concatenate(([0], np.cumsum(used.sum(1)))).astype(np.int32)
        small = small[used]
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(small))]
    return pa.Array.from_buffers(BINARY, count, buffers)


def join(*parts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, NOTHING)


def lengths(column: pa.Array) -> Numbers:
    found: Numbers = np.asarray(pc.binary_length(column)).astype(np.int64)
    return found


def offsets_of(column: pa.Array) -> Numbers:
    """Data of a new column of bytes, whose offset is 0."""
    return np.frombuffer(column.buffers()[1], np.int32)[: len(column) + 1].astype(np.int64)
