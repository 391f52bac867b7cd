"""A piece of the log as Arrow columns, sorted by (topic, topic_offset). docs/guides/lake.md, "Columns".

Each distinct topic is processed once; Arrow copies payloads directly from the frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rumq.lake.kernels import walking
from rumq.lake.piece import PROPERTIES, QOS, RETAIN, Integers, RecordArrays
from rumq.lake.schema import GROUP_ROWS, LEVELS, PAIRS, SCHEMA

UTC = pa.timestamp("us", "UTC")


class TopicColumns:
    """The distinct topics of a piece in the order of their UTF-8 bytes, as Parquet sorts them.

    names: Arrow strings; ranks: the topic of each record as index in `names`"""

    def __init__(self, topic_ids: npt.NDArray[np.uint32], known: Mapping[int, bytes]) -> None:
        ids, which = np.unique(topic_ids, return_inverse=True)
        raw = [known.get(number, b"") for number in ids.tolist()]
        order = np.array(sorted(range(len(raw)), key=raw.__getitem__), np.int64)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        self.raw = [raw[at] for at in order.tolist()]
        self.names = as_text(pa.array(self.raw, pa.binary()))
        # numpy has a radix sort for two bytes.
        self.ranks = place[which].astype(np.uint16 if len(raw) < 1 << 16 else np.int64)
        words = pc.split_pattern(self.names, "/")
        starts = words.offsets.to_numpy().astype(np.int64)
        self.depths = np.diff(starts)
        flat = words.flatten()
        self.levels = []  # one deeper than the deepest topic is null anyway
        for level in range(min(LEVELS, int(self.depths.max(initial=0)))):
            has = self.depths > level
            at = np.where(has, starts[:-1] + level, 0)
            self.levels.append(flat.take(pa.array(at, mask=~has)))


def batches(
    piece: RecordArrays, names: tuple[Mapping[int, bytes], Mapping[int, bytes]], partition: str
) -> Iterator[pa.Table]:
    """The sorted rows of a piece, by row group. names: as of `PartitionView.names`"""
    topics = TopicColumns(piece.topic_ids, names[0])
    order = np.argsort(topics.ranks, kind="stable")  # in a topic, offsets grow with the lsn
    payloads = between(piece.payloads, piece.ends, piece.frames, pa.binary())
    properties = PropertyColumns(piece) if (piece.flags & PROPERTIES).any() else None
    people, person = np.unique(piece.publishers, return_inverse=True)
    clients = as_text(pa.array([names[1].get(n) if n else None for n in people.tolist()], pa.binary()))
    for first in range(0, len(piece), GROUP_ROWS):
        rows = order[first : first + GROUP_ROWS]
        at = pa.array(rows)
        ranks = topics.ranks[rows].astype(np.int64)
        # A group's dictionary has the topics of its own rows only, which are consecutive.
        low, high = int(ranks[0]), int(ranks[-1]) + 1
        local = pa.array((ranks - low).astype(np.int32))
        flags = piece.flags[rows]
        columns = {
            "ts": pa.array(piece.ts[rows]).cast(UTC),
            "topic": coded(local, topics.names.slice(low, high - low)),
            "topic_offset": pa.array(piece.topic_offsets[rows]),
            "lsn": pa.array(piece.lsns[rows]),
            "levels": pa.array(topics.depths[ranks].astype(np.int16)),
            **{f"l{level}": coded(local, column.slice(low, high - low)) for level, column in enumerate(topics.levels)},
            "partition": coded(pa.array(np.zeros(len(rows), np.int32)), pa.array([partition])),
            "client_id": coded(pa.array(person[rows].astype(np.int32)), clients),
            "qos": pa.array((flags & QOS).astype(np.int8)),
            "retain": pa.array((flags & RETAIN).astype(bool)),
            "payload": payloads.take(at),
        }
        if properties is not None:
            columns |= properties.columns(rows)
        yield pa.table([columns[name] if name in columns else nulls(name, len(rows)) for name in SCHEMA.names], SCHEMA)


def nulls(name: str, count: int) -> pa.Array:
    return pa.nulls(count, SCHEMA.field(name).type)


def coded(codes: pa.Array, values: pa.Array) -> pa.Array:
    return values.take(codes)


def between(starts: Integers, ends: Integers, data: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
    """The consecutive bytes starts[i]..ends[i] of `data`, as views without a copy."""
    if not len(starts):
        return pa.array([], kind)
    bounds = np.empty(2 * len(starts) + 1, np.int32)
    bounds[0:-1:2], bounds[1::2], bounds[-1] = starts, ends, ends[-1]
    pieces = pa.Array.from_buffers(pa.binary(), 2 * len(starts), [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    wanted = pieces.take(pa.array(np.arange(0, 2 * len(starts), 2)))
    return wanted if kind == pa.binary() else as_text(wanted)


def as_text(raw: pa.Array) -> pa.Array:
    """Bytes as text; replacement characters for invalid UTF-8: one bad name must never stop an export."""
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        words = [None if word is None else word.decode(errors="replace") for word in raw.to_pylist()]
        return pa.array(words, pa.string())


class PropertyColumns:
    """The MQTT 5 properties of a piece, parsed once, as columns for subsets of its records."""

    def __init__(self, piece: RecordArrays) -> None:
        count = len(piece)
        flat, self._counts = np.empty(8 * count, np.int64), np.empty(count, np.int64)
        where = piece.starts, piece.payloads, piece.flags, piece.frames, flat, self._counts
        pairs = np.empty(4 * walking.find_properties(*where, np.empty(0, np.int64)), np.int64)
        walking.find_properties(*where, pairs)
        self._firsts = np.cumsum(self._counts) - self._counts
        self._frames = piece.frames
        users, places = pairs.reshape(-1, 4), flat.reshape(count, 8)
        self._keys = between(users[:, 0], users[:, 1], self._frames, pa.string())
        self._values = between(users[:, 2], users[:, 3], self._frames, pa.string())
        self._columns = {
            "content_type": self._words(places[:, 0], places[:, 1], pa.string()),
            "response_topic": self._words(places[:, 2], places[:, 3], pa.string()),
            "correlation_data": self._words(places[:, 4], places[:, 5], pa.binary()),
            "message_expiry": pa.array(places[:, 6], mask=places[:, 6] < 0),
            "payload_format": pa.array(places[:, 7].astype(np.int8), mask=places[:, 7] < 0),
        }

    def columns(self, rows: Integers) -> dict[str, pa.Array]:
        """rows: numbers of records, in any order"""
        at = pa.array(rows)
        return {"properties": self._pairs(rows), **{name: c.take(at) for name, c in self._columns.items()}}

    def _words(self, starts: Integers, ends: Integers, kind: pa.DataType) -> pa.Array:
        has = starts >= 0
        found = between(starts[has], ends[has], self._frames, kind)
        return found.take(pa.array(np.cumsum(has) - 1, mask=~has))

    def _pairs(self, rows: Integers) -> pa.Array:
        """User properties: one list per record, empty if it has none."""
        counts = self._counts[rows]
        offsets = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        at = pa.array(np.repeat(self._firsts[rows] - offsets[:-1], counts) + np.arange(offsets[-1]))
        pairs = pa.StructArray.from_arrays([self._keys.take(at), self._values.take(at)], fields=list(PAIRS.value_type))
        return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=PAIRS)
