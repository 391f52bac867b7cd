"""Wills, published by the broker when they are due. MQTT 5.0, 3.1.2.5.

A will takes the path of an ordinary PUBLISH: through the kernel into the batches of the turn."""

from __future__ import annotations

from collections.abc import Callable, Collection

from commitlog.log.store import Store
from rumq.loop.ports import EventSink
from rumq.mqtt.encode import encode
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Publish, Will
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.state.session import Session
from rumq.session.state.wills import message_of, rules_permit_will
from rumq.shards.write_path.topic_registry import TopicRegistry


class WillPublisher:
    def __init__(
        self, events: EventSink, policies: Collection[ListenerPolicy], store: Store, batches: list[Batch],
        topics: TopicRegistry, charge: Callable[[str, str, bytes], None],
    ) -> None:  # fmt: skip
        """policies: of every listener; charge: (session, holder, name) a topic that a will creates"""
        self._events, self._policies = events, policies
        self._partitions, self._batches, self._topics = store.partitions, batches, topics
        self._charge = charge
        self._wire = Wire(True, 1 << 28, 65535, 0)
        self._wire.own = True

    def publish_will(self, session: Session, will: Will, current: Session | None) -> None:
        """Publish a will that is due. current: the session that its client has now"""
        author = session.author
        if not rules_permit_will(author, session.client_id, will, self._policies):
            self._events.tell(
                "permission.refused", client_id=session.client_id, peer=None,
                user=author.user if author is not None else None, action="will", topic=will.topic, refused=1,
            )  # fmt: skip
            return
        self._publish(message_of(will), session, current)

    def _number(self, client_id: str, partition: int, current: Session | None) -> int:
        """Of the publisher; the session that its client has now holds it: No Local is for a will too."""
        there = self._partitions[partition]
        number = there.add_publisher(client_id)
        if current is not None and not current.ended:
            own = current.own_publishers(len(self._batches))
            if not own[partition]:
                own[partition] = number
                return number
        there.release_publisher(number)
        return number

    def _publish(self, packet: Publish, session: Session, current: Session | None) -> None:
        """Publish as a client would; refused only if there is no room for its topic."""
        client_id, version = session.client_id, 5 if session.version == 5 else 4
        wire, batches = self._wire, self._batches
        wire.v5 = version == 5
        wire.qos2_open = None
        wire.unacknowledged = 0
        wire.publishers = [0] * len(batches)
        data = encode(packet, version)
        pos = 0
        while True:
            pos = ingest.cut(wire, batches, data, pos, len(data), self._topics.known)
            if wire.stop == ingest.TOPIC:
                author = session.author
                self._charge(session.key, author.holder if author is not None else "", wire.topic)
                if not self._topics.add(wire.topic):
                    self._topics.refuse(wire.topic, client_id, None)
                    return
            elif wire.stop == ingest.PUBLISHER:
                wire.publishers[wire.partition] = self._number(client_id, wire.partition, current)
            elif wire.stop == ingest.FULL:
                batches[wire.partition].grow(wire.frame_bytes)
            else:
                break
        assert pos == len(data), wire.fault_text
        wire.acks = None
        wire.ack_parts = 0
