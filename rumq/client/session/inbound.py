"""Messages from the broker: topic aliases, duplicate detection, acknowledgement after delivery to the application.

A message is acknowledged when the application requests the next one or disconnects cleanly, so messages of an
interrupted application are redelivered. MQTT 5.0, 3.3.2.3.4 (aliases), 4.3 and 4.4. No I/O.
"""

from collections import deque
from typing import NamedTuple

from rumq.client.session.messages import Message, as_message
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel
from rumq.mqtt.reasons import Reason


class InboundMessage(NamedTuple):
    message: Message
    packet_id: int | None
    connection: int  # an acknowledgement is valid only on the connection that delivered the message


class Inbound:
    """Messages that wait for the application, are unacknowledged, or of QoS 2 await PUBREL."""

    def __init__(self, topic_alias_maximum: int) -> None:
        self._alias_maximum = topic_alias_maximum
        self._aliases: dict[int, str] = {}
        self._connection = 0
        self._session_start = 0  # number of the connection
        self._waiting: deque[InboundMessage] = deque()
        self.bytes_waiting = 0
        self._unacknowledged: list[InboundMessage] = []
        self._unreleased: dict[int, bool] = {}  # QoS 2 packet ids; True once the application has the message

    def __len__(self) -> int:
        """Messages that wait for the application."""
        return len(self._waiting)

    def connected(self, *, session_present: bool) -> None:
        """Start a new connection. The broker redelivers unacknowledged messages of a resumed session."""
        self._connection += 1
        self._aliases.clear()
        if session_present:
            self._waiting = deque(inbound for inbound in self._waiting if not self._is_redelivered(inbound))
            self.bytes_waiting = sum(cost(inbound.message) for inbound in self._waiting)
            self._unreleased = {packet_id: True for packet_id, popped in self._unreleased.items() if popped}
        else:
            self._unreleased.clear()
            self._session_start = self._connection

    def _is_redelivered(self, inbound: InboundMessage) -> bool:
        return inbound.packet_id is not None and inbound.connection >= self._session_start

    def receive(self, publish: Publish) -> Packet | None:
        """Queue a PUBLISH; returns PUBREC only for a duplicate that the application has already received."""
        topic = self._topic_of(publish)
        packet_id = publish.packet_id
        if publish.qos == 2 and packet_id is not None:
            if packet_id in self._unreleased:
                return Pubrec(packet_id) if self._unreleased[packet_id] else None
            self._unreleased[packet_id] = False
        message = as_message(publish, topic)
        self._waiting.append(InboundMessage(message, packet_id, self._connection))
        self.bytes_waiting += cost(message)
        return None

    def receive_pubrel(self, pubrel: Pubrel) -> Pubcomp:
        known = self._unreleased.pop(pubrel.packet_id, None) is not None
        return Pubcomp(pubrel.packet_id, Reason.SUCCESS if known else Reason.PACKET_IDENTIFIER_NOT_FOUND)

    def pop(self, messages_max: int | None) -> list[Message]:
        """The oldest waiting messages; the next `acknowledge` acknowledges them."""
        count = len(self._waiting) if messages_max is None else min(messages_max, len(self._waiting))
        self._unacknowledged += (popped := [self._waiting.popleft() for _ in range(count)])
        for inbound in popped:
            self.bytes_waiting -= cost(inbound.message)
            if inbound.message.qos == 2 and inbound.connection == self._connection and inbound.packet_id:
                self._unreleased[inbound.packet_id] = True
        return [inbound.message for inbound in popped]

    def acknowledge(self) -> list[Packet]:
        """The acknowledgements of all popped messages."""
        answers: list[Packet] = []
        for message, packet_id, connection in self._unacknowledged:
            if packet_id is not None and connection == self._connection:
                answers.append(Puback(packet_id) if message.qos == 1 else Pubrec(packet_id))
        self._unacknowledged.clear()
        return answers

    def _topic_of(self, publish: Publish) -> str:
        alias = publish.properties.get("topic_alias")
        if alias is None:
            if not publish.topic:
                raise ProtocolViolation("a PUBLISH with neither topic nor alias")
            return publish.topic
        if not 0 < alias <= self._alias_maximum:
            raise MqttFault(f"topic alias {alias}, we allow {self._alias_maximum}", Reason.TOPIC_ALIAS_INVALID)
        if publish.topic:
            self._aliases[alias] = publish.topic
        elif alias not in self._aliases:
            raise ProtocolViolation(f"topic alias {alias} is not assigned")
        return self._aliases[alias]


def cost(message: Message) -> int:
    """Approximate memory of a waiting message, in bytes."""
    return len(message.payload) + len(message.topic) + 400
