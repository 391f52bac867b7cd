"""Messages that the broker publishes for clients that are not there to do it: their wills. MQTT 5.0, 3.1.2.5.

They take the way that a client's own take: through the kernel, into the batches of the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.mqtt.encode import encode
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Publish, Will
from rumq.session.state.session import Session
from rumq.session.state.wills import message_of, rules_permit_will

if TYPE_CHECKING:
    from rumq.shards.turn.turn import Driver


class WillPublisher:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._wire = Wire(True, 1 << 28, 65535, 0)
        self._wire.own = True

    def publish_will(self, session: Session, will: Will) -> None:
        driver, author = self._driver, session.author
        if not rules_permit_will(author, session.client_id, will, driver.entrances):
            driver.tell(
                "permission.refused", client_id=session.client_id, peer=None,
                user=author.user if author is not None else None, action="will", topic=will.topic, refused=1,
            )  # fmt: skip
            return
        self._publish(message_of(will), session, 5 if session.version == 5 else 4)

    def _publish(self, packet: Publish, session: Session, version: int) -> None:
        """Publish as a client would; refused only if there is no room for its topic."""
        client_id = session.client_id
        driver, wire = self._driver, self._wire
        wire.v5 = version == 5
        wire.qos2_open = None
        wire.unacknowledged = 0
        wire.publishers = [0] * len(driver.batches)
        data = encode(packet, version)
        pos = 0
        while True:
            pos = ingest.cut(wire, driver.batches, data, pos, len(data), driver.topics)
            if wire.stop == ingest.TOPIC:
                if not driver.add_topic(wire.topic):
                    driver.numbering.refuse(wire.topic, client_id, None)
                    return
            elif wire.stop == ingest.PUBLISHER:
                number = driver.publisher_number(wire.partition, client_id)
                wire.publishers[wire.partition] = number
                current = driver.registry.sessions.get(session.key)
                if current is not None and current.publishers is not None:
                    current.publishers[wire.partition] = number  # No Local holds for a will too
            elif wire.stop == ingest.FULL:
                driver.batches[wire.partition].grow(wire.frame_bytes)
            else:
                break
        assert pos == len(data), wire.fault_text
        wire.acks.clear()
        wire.ack_parts = 0
