"""The last retained message of each topic: a view of the log. MQTT 5.0, 3.3.1.3.

A message is kept as one string of bytes: a million objects would weigh more than their content. An empty payload
removes the topic from the view. Where other shards stand behind, what was replaced a moment ago is kept as well."""
# compiled: warm

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from commitlog import Chunk
from commitlog.row_layout import ROW_BYTES, ROW_EMPTY, ROW_FLAGS_AT
from router.kernels import filters
from router.kernels import routes as kernel
from router.matching.sorted_topics import SortedTopics
from router.readers.subscription import TopicPermit

HEAD = struct.Struct("<IQQ")
PIECE = 64  # names of a search, or messages found elsewhere, that are told at once
REPLACED_BYTES_MAX = 1 << 20  # of each partition, for shards that are so much behind


class RetainedRecord(NamedTuple):
    """One retained message: its record, and where it stands in the log."""

    topic: str
    partition: int
    lsn: int
    base_ts: int
    row: bytes
    frame: bytes


def packed(message: RetainedRecord) -> bytes:
    return HEAD.pack(message.partition, message.lsn, message.base_ts) + message.row + message.frame


def unpacked(name: bytes, raw: bytes) -> RetainedRecord:
    partition, lsn, base_ts = HEAD.unpack_from(raw)
    row_end = HEAD.size + ROW_BYTES
    return RetainedRecord(name.decode(), partition, lsn, base_ts, raw[HEAD.size : row_end], raw[row_end:])


class RetainedView:
    """Topic -> its retained message, searched by filter without reading payloads."""

    def __init__(self) -> None:
        self._messages = SortedTopics()
        self.bytes = 0
        self.bytes_in: dict[int, int] = {}  # of each partition
        self.changes = 0
        self.replaced_bytes_max = 0
        self._replaced: dict[int, ReplacedTopic] = {}  # by partition

    def __len__(self) -> int:
        return self._messages.count

    def update(self, partition: int, chunk: Chunk, names: list[bytes]) -> None:
        """Apply the retained messages of a chunk."""
        rows, frames = memoryview(chunk.rows), memoryview(chunk.frames)
        for topic_id, row in kernel.last_retained(chunk.rows, chunk.count).items():
            self.changes += 1
            raw = bytes(rows[ROW_BYTES * row : ROW_BYTES * (row + 1)])
            name = names[topic_id]
            if raw[ROW_FLAGS_AT] & ROW_EMPTY:
                old = self._forget(name)
            else:
                start, stop = kernel.frame_bounds(chunk.rows, row, len(chunk.frames))
                head = HEAD.pack(partition, chunk.base_lsn + row, chunk.base_ts)
                old = self._keep(name, b"".join((head, raw, frames[start:stop])))
            if old is not None and self.replaced_bytes_max:
                if partition not in self._replaced:
                    self._replaced[partition] = ReplacedTopic()
                self._replaced[partition].add(chunk.base_lsn + row, name, old, self.replaced_bytes_max)

    def replaced(self, topic_filter: str, below: list[int], sent: list[int]) -> list[RetainedRecord]:
        """What a filter matches of the messages that were the retained ones at these lsns of each partition, and have
        been replaced or removed since, by records that are not sent yet. Cost: what has been replaced since."""
        wanted = topic_filter.encode()
        return [
            message
            for partition, replaced in self._replaced.items()
            for message in replaced.find(wanted, below[partition], sent[partition])
        ]

    def put(self, message: RetainedRecord) -> None:
        """Set the retained message of its topic."""
        self._keep(message.topic.encode(), packed(message))

    def drop(self, message: RetainedRecord) -> None:
        """Remove a message, as when it has expired, unless the topic has another one by now."""
        name = message.topic.encode()
        if self._messages.get(name) == packed(message):
            self._forget(name)

    def get(self, topic: str) -> RetainedRecord | None:
        """The retained message of a topic."""
        name = topic.encode()
        raw = self._messages.get(name)
        return None if raw is None else unpacked(name, raw)

    def page(self, after: RetainedRecord | None) -> list[RetainedRecord]:
        """Some messages in the order of topic names: the first, or those after another; none at the end."""
        name = b"" if after is None else after.topic.encode()
        return [unpacked(*pair) for pair in zip(*self._messages.page(name, after=True), strict=True)]

    def search(
        self,
        topic_filter: str,
        below: list[int] | None = None,
        wanted: Callable[[], bool] | None = None,
        permit: Callable[[], TopicPermit | None] | None = None,
    ) -> Search:
        """Look for the messages that a filter matches, piece by piece; see `Search`."""
        return Search(self._messages, topic_filter, below, wanted, permit)

    def find(self, topic_filter: str) -> list[RetainedRecord]:
        """The retained messages of every topic that the filter matches, all at once."""
        found: list[RetainedRecord] = []
        search = self.search(topic_filter)
        while not search.over:
            found += search.next_messages()
        return found

    def _keep(self, name: bytes, raw: bytes) -> bytes | None:
        """returns: what it was before"""
        old = self._messages.set(name, raw)
        self._count(raw, 1)
        if old is not None:
            self._count(old, -1)
        return old

    def _forget(self, name: bytes) -> bytes | None:
        old = self._messages.pop(name)
        if old is not None:
            self._count(old, -1)
        return old

    def _count(self, raw: bytes, sign: int) -> None:
        partition = int.from_bytes(raw[:4], "little")
        self.bytes += sign * len(raw)
        self.bytes_in[partition] = self.bytes_in.get(partition, 0) + sign * len(raw)


class ReplacedTopic:
    """Retained messages of one partition that others have replaced lately, in the order in which they did."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, bytes, bytes]] = deque()  # by which lsn, topic, the message
        self._bytes = 0

    def add(self, lsn: int, name: bytes, raw: bytes, bytes_max: int) -> None:
        """A message was replaced by the record with `lsn`. The oldest go beyond so many bytes."""
        self._entries.append((lsn, name, raw))
        self._bytes += len(raw)
        while self._bytes > bytes_max:
            self._bytes -= len(self._entries.popleft()[2])

    def find(self, topic_filter: bytes, below: int, sent: int = 0) -> list[RetainedRecord]:
        """Those that were retained just below an lsn. sent: what replaced them is not below it"""
        found: list[RetainedRecord] = []
        for lsn, name, raw in reversed(self._entries):
            if lsn < max(below, sent):
                break
            message = unpacked(name, raw)
            if message.lsn < below and filters.matches(topic_filter, name):
                found.append(message)
        return found


class Search:
    """The retained messages that a filter matches, in pieces, while the view changes.

    A topic that stays in the view is found once, in name order. looked: names examined so far."""

    def __init__(
        self,
        messages: SortedTopics,
        topic_filter: str,
        below: list[int] | None,
        wanted: Callable[[], bool] | None,
        permit: Callable[[], TopicPermit | None] | None = None,
    ) -> None:
        """below: lsn of each partition; newer messages are delivered live. wanted: called before each piece; False ends
        the search. permit: called at each piece for what may be received"""
        self._permit = permit
        self._messages = messages
        self._filter = topic_filter.encode()
        self._below = below
        self._wanted = wanted
        self.over = False
        self.looked = 0
        # What all matching names begin with; the name itself of a filter "name/#" stands elsewhere.
        literal, _, _ = self._filter.partition(b"+")
        self._prefix = literal.removesuffix(b"#")
        self._parent = b""
        if self._filter.endswith(b"/#") and b"+" not in self._filter:
            self._parent = self._filter[:-2]
        if b"+" not in self._filter and b"#" not in self._filter:
            self._parent, self._prefix = self._filter, b""
        self._at, self._after = self._prefix, False

    def permit(self) -> TopicPermit | None:
        """What may be received now; None: everything."""
        return self._permit() if self._permit is not None else None

    def next_messages(self) -> list[RetainedRecord]:
        """The next messages, of `PIECE` names at most, maybe none; `over` is set at the end."""
        if self._wanted is not None and not self._wanted():
            self.over = True
            return []
        if self._parent:
            name, self._parent = self._parent, b""
            self.over = name == self._filter
            self.looked += 1
            raw = self._messages.get(name)
            return [] if raw is None else self._read([name], [raw])
        names, values = self._messages.page(self._at, after=self._after)
        names, values = names[:PIECE], values[:PIECE]
        self.looked += len(names)
        places, self.over = filters.matching(names, self._filter, self._prefix)
        if not names:
            self.over = True
        else:
            self._at, self._after = names[-1], True
        return self._read([names[place] for place in places], [values[place] for place in places])

    def _read(self, names: list[bytes], values: list[bytes]) -> list[RetainedRecord]:
        found = [unpacked(name, raw) for name, raw in zip(names, values, strict=True)]
        permit = self.permit()
        if permit is not None:
            found = [message for message in found if permit.may_receive(message.topic)]
        below = self._below
        return found if below is None else [m for m in found if m.lsn < below[m.partition]]


class FoundRetained:
    """Retained messages found elsewhere, in pieces like those of a `Search`."""

    def __init__(self, messages: list[RetainedRecord], permit: Callable[[], TopicPermit | None] | None = None) -> None:
        """permit: as of `Search`"""
        self._messages = messages
        self._permit = permit
        self._at = 0
        self.looked = 0

    @property
    def over(self) -> bool:
        return self._at >= len(self._messages)

    def permit(self) -> TopicPermit | None:
        """What may be received now; None: everything."""
        return self._permit() if self._permit is not None else None

    def next_messages(self) -> list[RetainedRecord]:
        found = self._messages[self._at : self._at + PIECE]
        self._at += len(found)
        permit = self.permit()
        return found if permit is None else [each for each in found if permit.may_receive(each.topic)]
