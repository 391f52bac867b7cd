"""Messages that the broker publishes for clients that are not there to do it: their wills. MQTT 5.0, 3.1.2.5.

They take the way that a client's own take: through the kernel, into the batches of the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.mqtt.encode import encode
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.ingest import Wire
from rumq.mqtt.packets import Publish, Will
from rumq.session.journal import as_publish
from rumq.session.session import Session

if TYPE_CHECKING:
    from rumq.shards.driver import Driver


class OnBehalf:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._wire = Wire(True, 1 << 28, 65535, 0)
        self._wire.own = True

    def publish_will(self, session: Session, will: Will) -> None:
        self.publish(as_publish(will), session.client_id, 5 if session.version == 5 else 4)

    def publish(self, packet: Publish, client_id: str, version: int = 5) -> None:
        """Publish as a client would; refused only if there is no room for its topic."""
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
                session = driver.registry.sessions.get(client_id)
                if session is not None and session.publishers is not None:
                    session.publishers[wire.partition] = number  # No Local holds for a will too
            elif wire.stop == ingest.FULL:
                driver.batches[wire.partition].grow(wire.frame_bytes)
            else:
                break
        assert pos == len(data), wire.fault_text
        wire.acks.clear()
        wire.ack_parts = 0
