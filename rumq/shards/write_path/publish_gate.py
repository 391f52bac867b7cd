"""Admission of PUBLISH packets to a shard: topic and publisher numbers, refusals, pauses."""

from __future__ import annotations

from commitlog.log.store import Store
from rumq.mqtt.kernels.batch import Batch
from rumq.session.connection.broker_port import ClientInfo, PublishRefusal, UndecidedMessages
from rumq.session.ports.transport import ConnectionHandler
from rumq.shards.write_path.backpressure import Backpressure
from rumq.shards.write_path.new_topic_budget import NewTopicBudget
from rumq.shards.write_path.retained_quota import RetainedQuota
from rumq.shards.write_path.topic_registry import TopicRegistry
from rumq.shards.write_path.write_admission import WriteAdmission


class PublishGate:
    """The `PublishPort` of a shard. undecided: where a QoS 2 message waits that a missing shard may have"""

    def __init__(
        self, store: Store, batches: list[Batch], topics: TopicRegistry, admission: WriteAdmission,
        retained_quota: RetainedQuota, backpressure: Backpressure, budget: NewTopicBudget, undecided: UndecidedMessages,
    ) -> None:  # fmt: skip
        self.match_topic, self.change_filters = budget.match, budget.change_filters
        self._partitions, self.batches, self.undecided = store.partitions, batches, undecided
        self._admission, self._retained_quota = admission, retained_quota
        self.topics, self.topics_with = topics.known, topics.with_name
        self.add_topic, self._refuse_topic = topics.add, topics.refuse
        self.backpressure, self.pause_publisher = backpressure.bits, backpressure.pause_publisher

    def publisher_number(self, partition: int, client_id: str) -> int:
        return int(self._partitions[partition].add_publisher(client_id))

    def refuse_topic(self, name: bytes, client: ClientInfo, user_topics_max: int | None) -> str:
        user = client.identity.user if client.identity is not None else None
        return self._refuse_topic(name, client.client_id or "", client.transport.peer, user, user_topics_max)

    def refuse_publish(
        self, handler: ConnectionHandler, partition: int, *, is_unanswerable: bool
    ) -> PublishRefusal | None:
        if self.batches[partition].refusing:
            return self._admission.refuse(handler, partition, is_unanswerable=is_unanswerable)
        return self._retained_quota.refuse()
