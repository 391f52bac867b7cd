"""Which ids messages got that one connection has published: its records in the log, topic by topic, in order.

An acknowledgement does not say it: docs/decisions/0051-positions-are-read-back.md. A connection has a client id of its
own, which the log records with each message, and the broker acknowledges in the order of sending: so the n-th
acknowledged message of a topic is the n-th record of that client id there. No files, no tasks.
docs/decisions/0060-grpc.md"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable
from typing import NamedTuple

from commitlog import Chunk
from rumq.services.kernels.record_messages import places_of, topic_at
from rumq.services.publishing.batch import PublishBatch

FRAME_WORD, ROW_WORDS = 1, 8
TOPICS_MAX = 100_000  # whose names are remembered


class AcknowledgedPublish(NamedTuple):
    """A message that is in the log. number: in its batch"""

    topic: bytes
    batch: PublishBatch
    number: int


class PlaceSearch:
    """Of one connection. left: acknowledged messages whose records were not found yet"""

    def __init__(self) -> None:
        self.left = 0
        self._wanted: defaultdict[bytes, deque[tuple[AcknowledgedPublish, float]]] = defaultdict(deque)
        self._found: defaultdict[bytes, deque[int]] = defaultdict(deque)  # offsets, of messages not acknowledged yet
        self._given_up: Counter[bytes] = Counter()  # messages whose records may come yet, before those of later ones
        self._topics: dict[tuple[str, int], bytes] = {}  # by partition and topic id

    def acknowledged(self, messages: Iterable[AcknowledgedPublish], now: float) -> None:
        for each in messages:
            found = self._found.get(each.topic)
            if found:
                each.batch.located(each.number, found.popleft() + 1)
                if not found:
                    del self._found[each.topic]
            else:
                self._wanted[each.topic].append((each, now))
                self.left += 1

    def look(self, partition: str, chunk: Chunk, own: Collection[int]) -> None:
        """own: numbers of this client id among the publishers of these records

        cost: one pass over the rows of all publishers"""
        words = memoryview(chunk.rows).cast("B").cast("I")
        for row, topic_id, offset in places_of(chunk.rows, own):
            topic = self._topics.get((partition, topic_id))
            if topic is None:
                topic = topic_at(chunk.frames, words[row * ROW_WORDS + FRAME_WORD])
                if len(self._topics) >= TOPICS_MAX:
                    self._topics.clear()
                self._topics[partition, topic_id] = topic
            wanted = self._wanted.get(topic)
            if self._given_up and self._given_up[topic]:
                self._given_up[topic] -= 1
                self._given_up += Counter()  # without those that have none
            elif wanted:
                each, _ = wanted.popleft()
                self.left -= 1
                if not wanted:
                    del self._wanted[topic]
                each.batch.located(each.number, offset + 1)
            else:
                self._found[topic].append(offset)

    def give_up(self, before: float) -> int:
        """Messages that were acknowledged before that time get no id, and are answered; returns how many.

        Their records may come yet, where a copy is behind: they are told from those of later ones by their order."""
        late = [topic for topic, wanted in self._wanted.items() if wanted[0][1] < before]
        count = 0
        for topic in late:
            wanted = self._wanted[topic]
            while wanted and wanted[0][1] < before:
                each, _ = wanted.popleft()
                self.left -= 1
                self._given_up[topic] += 1
                count += 1
                each.batch.located(each.number, 0)
            if not wanted:
                del self._wanted[topic]
        return count
