"""The rows of each topic of a segment, as its index has them: 32 bytes a topic, by id.

docs/reference/log-format.md, "Index".
A mapping over the packed bytes: no object a topic."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import NamedTuple

TOPIC = struct.Struct("<IIQQII")


class TopicRows(NamedTuple):
    """The rows of one topic. first, following: its first offset here, and the one after its last; start: in `rows`."""

    records: int
    first: int
    following: int
    start: int


class PackedTopicTable(Mapping[int, TopicRows]):
    """packed: records of `TOPIC`, their ids rising"""

    __slots__ = ("packed",)

    def __init__(self, packed: bytes | bytearray = b"") -> None:
        self.packed = packed

    def __len__(self) -> int:
        return len(self.packed) // TOPIC.size

    def __iter__(self) -> Iterator[int]:
        return (fields[0] for fields in TOPIC.iter_unpack(self.packed))

    def __getitem__(self, topic_id: int) -> TopicRows:
        at = bisect_left(range(len(self)), topic_id, key=self._id)
        if at == len(self) or self._id(at) != topic_id:
            raise KeyError(topic_id)
        _, *fields, _ = TOPIC.unpack_from(self.packed, at * TOPIC.size)
        return TopicRows(*fields)

    @property
    def highest(self) -> int:
        """The highest id; -1 when there is none."""
        return self._id(len(self) - 1) if self.packed else -1

    def _id(self, at: int) -> int:
        return int.from_bytes(self.packed[at * TOPIC.size : at * TOPIC.size + 4], "little")


def topic_table(topics: Mapping[int, TopicRows]) -> PackedTopicTable:
    """The table of a dictionary."""
    if isinstance(topics, PackedTopicTable):
        return topics
    return PackedTopicTable(
        b"".join(TOPIC.pack(i, t.records, t.first, t.following, t.start, 0) for i, t in sorted(topics.items()))
    )
