"""Chunks of the log as Arrow columns, without Python per message. docs/reference/log-format.md, "Row" and "Frame"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from commitlog import Chunk
from rumq.lake.piece import ROW
from rumq.table.arrow import properties as mqtt
from rumq.table.arrow.properties import FrameProperties
from rumq.table.arrow.slices import slices

RETAIN, PROPERTIES = 4, 32
LOG_APPEND_TIME = 1  # Kafka's LogAppendTime: the broker's timestamp


class Block:
    """The records of consecutive chunks. frames: uint8; starts, ends: of each record's frame in it; ts: µs."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        counts = np.array([chunk.count for chunk in chunks])
        sizes = np.array([len(chunk.frames) for chunk in chunks])
        self.rows = np.frombuffer(b"".join(chunk.rows for chunk in chunks), ROW)
        self.frames = np.frombuffer(b"".join(chunk.frames for chunk in chunks), np.uint8)
        self.starts = self.rows["frame_pos"] + np.repeat(np.cumsum(sizes) - sizes, counts)
        self.ends = np.append(self.starts[1:], len(self.frames))
        firsts = np.array([chunk.base_lsn for chunk in chunks]) - (np.cumsum(counts) - counts)
        self.lsns = np.repeat(firsts, counts) + np.arange(len(self.rows))
        self.ts = np.repeat(np.array([chunk.base_ts for chunk in chunks]), counts) + self.rows["ts_delta"]

    def kept(self, which: npt.NDArray[np.int64] | slice) -> Block:
        """A subset of the records; which: indices, in order, or a slice."""
        some = object.__new__(Block)
        some.frames = self.frames
        some.rows, some.starts, some.ends = self.rows[which], self.starts[which], self.ends[which]
        some.lsns, some.ts = self.lsns[which], self.ts[which]
        return some

    def topic(self, row: int) -> str:
        """The topic in its frame."""
        at = int(self.starts[row]) + 1
        while self.frames[at] > 127:
            at += 1
        size = int(self.frames[at + 1]) << 8 | int(self.frames[at + 2])
        return self.frames[at + 3 : at + 3 + size].tobytes().decode()


class RangeTopics:
    """The topics of a partition by their id, from the frames; each is matched with the filter once."""

    def __init__(self, wants: Callable[[str], bool] | None) -> None:
        self._wants = wants
        self._codes = np.full(1024, -1, np.int32)
        self._wanted = np.zeros(1024, bool)
        self._words: list[str] = []
        self._array = pa.array([], pa.string())

    def learn(self, block: Block) -> Block:
        """Add the topics of a block. returns: its records of wanted topics"""
        ids = block.rows["topic_id"]
        if not len(ids):
            return block
        if (highest := int(ids.max())) >= len(self._codes):
            more = max(highest + 1, 2 * len(self._codes)) - len(self._codes)
            self._codes = np.append(self._codes, np.full(more, -1, np.int32))
            self._wanted = np.append(self._wanted, np.zeros(more, bool))
        new = np.flatnonzero(self._codes[ids] < 0)
        if len(new):
            fresh, rows = np.unique(ids[new], return_index=True)
            for number, row in zip(fresh.tolist(), new[rows].tolist(), strict=True):
                name = block.topic(row)
                self._codes[number] = len(self._words)
                self._wanted[number] = self._wants is None or self._wants(name)
                self._words.append(name)
            self._array = pa.array(self._words, pa.string())
        if self._wants is None:
            return block
        return block.kept(np.flatnonzero(self._wanted[ids]))

    def array(self, block: Block) -> pa.Array:
        codes = pa.array(self._codes[block.rows["topic_id"]])
        return pa.DictionaryArray.from_arrays(codes, self._array).cast(pa.string())


class Columns:
    """The columns of a block. publishers: number -> client id, for those that use it."""

    def __init__(self, block: Block, partition: str, topics: RangeTopics, publishers: Mapping[int, bytes]) -> None:
        self._block, self._rows = block, block.rows
        self._partition, self._topics, self._publishers = partition, topics, publishers

    def __len__(self) -> int:
        return len(self._rows)

    def array(self, column: str) -> pa.Array:
        """One column by its name; KeyError for an unknown one."""
        return MAKERS[column](self)

    def topic(self) -> pa.Array:
        return self._topics.array(self._block)

    def client_id(self) -> pa.Array:
        distinct, inverse = np.unique(self._rows["pub_no"], return_inverse=True)
        found = [self._publishers.get(number) for number in distinct.tolist()]
        words = pa.array([None if name is None else name.decode() for name in found], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(inverse.astype(np.int32)), words).cast(pa.string())

    def topic_offset(self) -> pa.Array:
        return pa.array(self._rows["topic_offset"].astype(np.int64))

    def lsn(self) -> pa.Array:
        return pa.array(self._block.lsns)

    def partition(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._partition, pa.string()), len(self))

    def ts(self) -> pa.Array:
        return pa.array(self._block.ts.astype(np.int64)).cast(pa.timestamp("us", "UTC"))

    def payload(self) -> pa.Array:
        block = self._block
        return slices(block.frames, block.starts + self._rows["payload_pos"], block.ends)

    def qos(self) -> pa.Array:
        return pa.array((self._rows["flags"] & 3).astype(np.int8))

    def retain(self) -> pa.Array:
        return pa.array((self._rows["flags"] & RETAIN).astype(bool))

    def properties(self) -> pa.Array:
        offsets, keys, values = self._parsed.users()
        pairs = pa.StructArray.from_arrays([keys, values], ["key", "value"])
        return pa.ListArray.from_arrays(pa.array(offsets), pairs)

    def properties_map(self) -> pa.Array:
        """The last of each name: Spark's maps have unique keys."""
        return as_map(*self._parsed.users())

    def headers(self) -> pa.Array:
        """In the form of the Kafka source."""
        offsets, keys, values = self._parsed.users()
        pairs = pa.StructArray.from_arrays([keys, values.cast(pa.binary())], ["key", "value"])
        return pa.ListArray.from_arrays(pa.array(offsets), pairs)

    @cached_property
    def _parsed(self) -> FrameProperties:
        flags = self._rows["flags"]
        return FrameProperties(self._block.frames, self._block.starts, flags & 3, flags & PROPERTIES != 0)

    def text(self, kind: int, made: pa.DataType) -> pa.Array:
        return self._parsed.text(kind).cast(made)

    def number(self, kind: int, made: pa.DataType) -> pa.Array:
        return self._parsed.number(kind, made)


def as_map(offsets: npt.NDArray[np.int32], keys: pa.Array, values: pa.Array) -> pa.Array:
    """Pairs of rows as maps: the last of each name."""
    count = len(offsets) - 1
    rows = np.repeat(np.arange(count, dtype=np.int64), np.diff(offsets))
    codes = keys.dictionary_encode().indices.to_numpy()
    pair = rows * (int(codes.max(initial=0)) + 1) + codes
    _, from_behind = np.unique(pair[::-1], return_index=True)
    last = np.sort(len(pair) - 1 - from_behind)
    counts = np.bincount(rows[last], minlength=count)
    starts = np.append(0, np.cumsum(counts)).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(starts), keys.take(pa.array(last)), values.take(pa.array(last)))


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
    "properties_map": Columns.properties_map,
    "content_type": lambda c: c.text(mqtt.CONTENT_TYPE, pa.string()),
    "response_topic": lambda c: c.text(mqtt.RESPONSE_TOPIC, pa.string()),
    "correlation_data": lambda c: c.text(mqtt.CORRELATION, pa.binary()),
    "message_expiry": lambda c: c.number(mqtt.EXPIRY, pa.int64()),
    "payload_format": lambda c: c.number(mqtt.PAYLOAD_FORMAT, pa.int8()),
    # The names of the Kafka source
    "key": lambda c: c.client_id().cast(pa.binary()),
    "value": Columns.payload,
    "offset": Columns.lsn,
    "timestamp": Columns.ts,
    "timestampType": lambda c: pa.repeat(pa.scalar(LOG_APPEND_TIME, pa.int32()), len(c)),
    "headers": Columns.headers,
}
