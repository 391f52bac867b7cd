"""The last retained message of each topic: a view of the log. MQTT 5.0, 3.3.1.3.

Knows no subscriber, no session. An empty payload takes the topic out of the view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from router.kernels import routes as kernel
from router.trie import TopicTree

ROW_EMPTY = 64


@dataclass(frozen=True, slots=True)
class Retained:
    """One retained message: its record, and where it stands in the log."""

    topic: str
    partition: int
    lsn: int
    base_ts: int
    row: bytes
    frame: bytes


class RetainedView:
    """Topic -> its retained message; searched by filter without a look at payloads."""

    def __init__(self) -> None:
        self._tree = TopicTree()
        self._by_topic: dict[str, Retained] = {}
        self.bytes = 0
        self.changes = 0  # grows with each

    def __len__(self) -> int:
        return len(self._by_topic)

    def take(self, partition: int, chunk: Any, names: list[bytes]) -> None:
        """Take in the retained messages of a chunk."""
        for topic_id, row in kernel.last_retained(chunk.rows, chunk.count).items():
            topic = names[topic_id].decode()
            raw = bytes(memoryview(chunk.rows)[32 * row : 32 * row + 32])
            old = self._by_topic.pop(topic, None)
            self.changes += 1
            if old is not None:
                self.bytes -= len(old.frame)
            if raw[28] & ROW_EMPTY:
                if old is not None:
                    self._tree.remove(topic)
                continue
            start, stop = kernel.frame_bounds(chunk.rows, row, len(chunk.frames))
            frame = bytes(memoryview(chunk.frames)[start:stop])
            self.put(Retained(topic, partition, chunk.base_lsn + row, chunk.base_ts, raw, frame))

    def put(self, message: Retained) -> None:
        """Have a message in the view; its topic has none."""
        self._by_topic[message.topic] = message
        self._tree.set(message.topic, message)
        self.bytes += len(message.frame)

    def all(self) -> list[Retained]:
        return list(self._by_topic.values())

    def find(self, topic_filter: str) -> list[Retained]:
        """The retained messages of every topic that the filter matches, oldest of each partition first."""
        found: list[Retained] = self._tree.find(topic_filter)  # type: ignore[assignment]
        return sorted(found, key=lambda m: (m.partition, m.lsn))

    def drop(self, topic: str) -> None:
        """Forget a message, as when it has expired."""
        message = self._by_topic.pop(topic, None)
        if message is not None:
            self.bytes -= len(message.frame)
            self._tree.remove(topic)
