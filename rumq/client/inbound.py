"""The broker's messages on their way to our user: aliases, duplicates, acknowledgements once they are taken.

A message is acknowledged when its taker comes back for more or leaves in peace, so what a crash interrupts
comes again. MQTT 5.0, 3.3.2.3.4 (aliases), 4.3 and 4.4. Refuses to know bytes, sockets and waiting.
"""

from collections import deque
from typing import NamedTuple

from rumq.client.messages import Message, as_message
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel
from rumq.mqtt.reasons import Reason


class Arrived(NamedTuple):
    message: Message
    packet_id: int | None
    connection: int  # an acknowledgement is only good on the connection that brought the message


class Inbound:
    """Messages that arrived: waiting, taken, and of QoS 2 not yet released."""

    def __init__(self, topic_alias_maximum: int) -> None:
        self._alias_maximum = topic_alias_maximum
        self._aliases: dict[int, str] = {}
        self._connection = 0
        self._session_began = 0  # on which connection
        self._waiting: deque[Arrived] = deque()
        self.bytes_waiting = 0
        self._taken: list[Arrived] = []
        self._unreleased: dict[int, bool] = {}  # QoS 2 ids; True once the message was taken

    def __len__(self) -> int:
        """How many wait to be taken."""
        return len(self._waiting)

    def connected(self, *, session_present: bool) -> None:
        """Begin a new connection. A resumed session sends again whatever we have not acknowledged."""
        self._connection += 1
        self._aliases.clear()
        if session_present:
            self._waiting = deque(arrived for arrived in self._waiting if not self._comes_again(arrived))
            self.bytes_waiting = sum(cost(arrived.message) for arrived in self._waiting)
            self._unreleased = {packet_id: True for packet_id, taken in self._unreleased.items() if taken}
        else:
            self._unreleased.clear()
            self._session_began = self._connection

    def _comes_again(self, arrived: Arrived) -> bool:
        return arrived.packet_id is not None and arrived.connection >= self._session_began

    def receive(self, publish: Publish) -> Packet | None:
        """Take a PUBLISH; returns an answer only where the message is one that was taken before."""
        topic = self._topic_of(publish)
        packet_id = publish.packet_id
        if publish.qos == 2 and packet_id is not None:
            if packet_id in self._unreleased:
                return Pubrec(packet_id) if self._unreleased[packet_id] else None
            self._unreleased[packet_id] = False
        message = as_message(publish, topic)
        self._waiting.append(Arrived(message, packet_id, self._connection))
        self.bytes_waiting += cost(message)
        return None

    def release(self, pubrel: Pubrel) -> Pubcomp:
        known = self._unreleased.pop(pubrel.packet_id, None) is not None
        return Pubcomp(pubrel.packet_id, Reason.SUCCESS if known else Reason.PACKET_IDENTIFIER_NOT_FOUND)

    def take(self, messages_max: int | None) -> list[Message]:
        """The oldest waiting messages. They are acknowledged by the next `acknowledge`."""
        count = len(self._waiting) if messages_max is None else min(messages_max, len(self._waiting))
        self._taken += (taken := [self._waiting.popleft() for _ in range(count)])
        for arrived in taken:
            self.bytes_waiting -= cost(arrived.message)
            if arrived.message.qos == 2 and arrived.connection == self._connection and arrived.packet_id:
                self._unreleased[arrived.packet_id] = True
        return [arrived.message for arrived in taken]

    def acknowledge(self) -> list[Packet]:
        """The answers to everything taken."""
        answers: list[Packet] = []
        for message, packet_id, connection in self._taken:
            if packet_id is not None and connection == self._connection:
                answers.append(Puback(packet_id) if message.qos == 1 else Pubrec(packet_id))
        self._taken.clear()
        return answers

    def _topic_of(self, publish: Publish) -> str:
        alias = publish.properties.get("topic_alias")
        if alias is None:
            if not publish.topic:
                raise ProtocolViolation("a PUBLISH with neither topic nor alias")
            return publish.topic
        if not 0 < alias <= self._alias_maximum:
            raise MqttFault(
                f"topic alias {alias}, we allow {self._alias_maximum}", Reason.TOPIC_ALIAS_INVALID
            )
        if publish.topic:
            self._aliases[alias] = publish.topic
        elif alias not in self._aliases:
            raise ProtocolViolation(f"topic alias {alias} stands for no topic yet")
        return self._aliases[alias]


def cost(message: Message) -> int:
    """About what a waiting message holds of memory, in bytes."""
    return len(message.payload) + len(message.topic) + 400
