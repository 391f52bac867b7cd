"""Streams and views as Kafka's topics. A view is a name for an MQTT filter within one stream.

The partitions of a topic are those of its stream, and offsets are lsns. A topic's id depends on the log and its name:
another log has other ids, so that no client takes an offset from one to the other. No sockets, no files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rumq.auth.permit import Permit
from rumq.kafka.protocol.errors import ErrorCode
from rumq.mqtt.topics import matches

GENERATION = "g1"


class KafkaTopic(NamedTuple):
    """filters: of MQTT topics that may be there; view_filter: of a view, which records it has; None: all"""

    name: str
    stream: str
    filters: tuple[str, ...]
    view_filter: str | None
    id: bytes


class TopicSource(NamedTuple):
    """What a topic is made of, as settings say. view_filter: None: a whole stream"""

    name: str
    stream: str
    filters: tuple[str, ...]
    view_filter: str | None = None


class TopicReader(NamedTuple):
    """Who reads. permit: None: everything may be read"""

    permit: Permit | None

    def may_read(self, topic: str) -> bool:
        """As for a replay over MQTT that continues live, because repeated reads are equivalent."""
        return self.permit is None or self.permit.past.may_receive(topic)

    def may_read_any(self, topic: KafkaTopic) -> bool:
        permit = self.permit
        return permit is None or any(permit.reach("replay", each) != "none" for each in topic.filters)

    def wants_all_of(self, topic: KafkaTopic) -> bool:
        return self.permit is None and topic.view_filter is None

    def wants(self, topic: KafkaTopic, mqtt_topic: str) -> bool:
        """Whether a record of an MQTT topic is shown in a Kafka topic."""
        return (topic.view_filter is None or matches(topic.view_filter, mqtt_topic)) and self.may_read(mqtt_topic)


class TopicCatalog:
    """log_id: of the data directory or the cluster"""

    def __init__(self, sources: Iterable[TopicSource], log_id: bytes) -> None:
        self.topics: dict[str, KafkaTopic] = {}
        for source in sources:
            topic_id = hashlib.sha256(b"kafka topic\0" + log_id + b"\0" + source.name.encode()).digest()[:16]
            self.topics[source.name] = KafkaTopic(*source, topic_id)
        self._by_id = {topic.id: topic for topic in self.topics.values()}

    def readable(self, reader: TopicReader) -> list[KafkaTopic]:
        """What a reader is shown."""
        return [topic for topic in self.topics.values() if reader.may_read_any(topic)]

    def find(self, name: str, reader: TopicReader) -> KafkaTopic | ErrorCode:
        """A topic, or why there is none. Who has rules does not learn which topics there are."""
        topic = self.topics.get(name)
        if topic is not None and reader.may_read_any(topic):
            return topic
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if reader.permit is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def find_id(self, topic_id: bytes, reader: TopicReader) -> KafkaTopic | ErrorCode:
        topic = self._by_id.get(topic_id)
        if topic is not None and reader.may_read_any(topic):
            return topic
        return ErrorCode.UNKNOWN_TOPIC_ID


def partition_name(stream: str, number: int) -> str:
    return f"{stream}/{GENERATION}/p{number}"


def partition_names(topic: KafkaTopic, present: Mapping[str, object]) -> list[str]:
    """Of a topic's partitions, in order, those of the log that are there."""
    names: list[str] = []
    while (name := partition_name(topic.stream, len(names))) in present:
        names.append(name)
    return names
