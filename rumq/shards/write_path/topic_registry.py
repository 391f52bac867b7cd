"""The topics of a shard: numbered once, and at most `topics_max` of each stream.

A topic uses memory as long as the log knows its name, and any publisher can invent one: beyond the limit a message for
an unknown topic is refused. Knows no socket."""

from __future__ import annotations

import os
from collections import Counter

from commitlog.log.partition_types import PartitionReader
from commitlog.log.store import Store
from rumq.loop.ports import EventSink
from rumq.mqtt.kernels.topics import TopicTable

QUEUES = b"$queues/"


class TopicRegistry:
    """known, own: topic -> partition << 32 | topic id, of every topic known here; own: that only processes of the
    broker's own publish to: no client finds these in its table"""

    def __init__(self, store: Store, events: EventSink) -> None:
        self._store, self._events = store, events
        self.known = TopicTable(int.from_bytes(os.urandom(8), "little"))
        self.own: dict[bytes, int] = {}
        self._counts: Counter[str] = Counter()  # topics, by stream
        self._bytes: Counter[str] = Counter()  # bytes of topic names, by stream
        self.refused: Counter[str] = Counter()  # messages that were refused, by stream
        for partition in store.partitions:
            self._counts[partition.stream] += len(partition.topic_names)
            self._bytes[partition.stream] += sum(map(len, partition.topic_names))
            for topic_id, name in enumerate(partition.topic_names):
                self.with_name(name)[name] = partition.index << 32 | topic_id

    def with_name(self, name: bytes) -> TopicTable | dict[bytes, int]:
        """The one of both that a topic belongs to."""
        return self.own if name.startswith(QUEUES) else self.known

    def add(self, name: bytes) -> bool:
        """Give a checked topic name its partition and number; False if its stream has no room for another topic."""
        partition = self._store.partitions[self._store.place(name.decode())]
        if self._is_full(partition, name):
            return False
        self._counts[partition.stream] += 1
        self._bytes[partition.stream] += len(name)
        self.with_name(name)[name] = partition.index << 32 | partition.add_topic(name)
        return True

    def _is_full(self, partition: PartitionReader, name: bytes) -> str:
        """Why a stream has no room for another topic; empty: it has."""
        stream, spec = partition.stream, partition.spec
        if spec.topics_max is not None and self._counts[stream] >= spec.topics_max:
            return f"the stream {stream} has {spec.topics_max} topics and may have no more"
        if spec.topics_bytes_max is not None and self._bytes[stream] + len(name) > spec.topics_bytes_max:
            most = spec.topics_bytes_max
            return f"the names of the topics of stream {stream} have {self._bytes[stream]} bytes, of at most {most}"
        return ""

    def number(self, partition: PartitionReader, name: bytes) -> int:
        """The id of a topic of a partition of ours, which another shard publishes to: that one keeps to the limit."""
        topic_id = partition.topic_ids.get(name)
        if topic_id is None:
            topic_id = partition.add_topic(name)
            self._counts[partition.stream] += 1
            self._bytes[partition.stream] += len(name)
            self.with_name(name)[name] = partition.index << 32 | topic_id
        return int(topic_id)

    def refuse(
        self,
        name: bytes,
        client_id: str,
        peer: str | None,
        user: str | None = None,
        user_topics_max: int | None = None,
    ) -> str:
        """Count a message for a topic that there is no room for; returns why, for its publisher.

        user_topics_max: how many topics the user has brought into being, which is as many as it may

        Told at the 1st, 2nd, 4th, 8th ... of a stream: a flood must not become a flood of events."""
        partition = self._store.partitions[self._store.place(name.decode())]
        stream, most = partition.stream, partition.spec.topics_max
        self.refused[stream] += 1
        refused = self.refused[stream]
        why = self._is_full(partition, name)
        if user_topics_max is not None:
            most = user_topics_max
            why = f"user {user!r} may bring {most} topics into being and has"
        if refused & (refused - 1) == 0:
            self._events.tell(
                "topic.refused",
                stream=stream,
                topics_max=most,
                why=why,
                refused=refused,
                client_id=client_id,
                peer=peer,
                user=None if user_topics_max is None else user,
            )
        return why
