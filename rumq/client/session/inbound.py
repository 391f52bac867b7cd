"""Messages from the broker: topic aliases, duplicate detection, lanes, acknowledgements in the order of arrival.

A message is acknowledged when the application says so: by asking for the next one, or message by message. So messages
of an interrupted application are redelivered. MQTT 5.0, 3.3.2.3.4 (aliases), 4.3, 4.4 and 4.6. No I/O."""

from collections import deque
from collections.abc import Iterable, Iterator

from rumq.client.session.messages import Message, Receipt, as_message
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import has_wildcard, matches


class Lane:
    """Messages that wait for one part of the application. topic_filter: which ones; "": those of no other lane"""

    def __init__(self, topic_filter: str = "") -> None:
        self.topic_filter = topic_filter
        self.is_exact = not has_wildcard(topic_filter)
        self.waiting: deque[Message] = deque()

    def __len__(self) -> int:
        return len(self.waiting)

    def takes(self, topic: str) -> bool:
        return topic == self.topic_filter if self.is_exact else matches(self.topic_filter, topic)


class Inbound:
    """Messages that wait for the application, are unacknowledged, or of QoS 2 await PUBREL.

    manual: a message counts as the application's once it is acknowledged, not once it is taken"""

    def __init__(self, topic_alias_maximum: int, *, manual: bool = False) -> None:
        self._alias_maximum, self._manual = topic_alias_maximum, manual
        self._aliases: dict[int, str] = {}
        self._connection = 0
        self._session_start = 0  # number of the connection
        self.main = Lane()
        self._lanes: list[Lane] = []
        self.bytes_waiting = 0  # in all lanes
        self._unacknowledged: deque[Receipt] = deque()  # of this connection, in the order of arrival
        self._unreleased: dict[int, bool] = {}  # QoS 2 packet ids; True once the application has the message

    def __len__(self) -> int:
        """Messages that wait for the application in the main lane."""
        return len(self.main)

    def add_lane(self, topic_filter: str) -> Lane:
        """A lane for the messages of a filter, which leave the main lane from now on."""
        lane = Lane(topic_filter)
        self._lanes.append(lane)
        return lane

    def remove_lane(self, lane: Lane) -> None:
        """What still waits there is dropped unacknowledged."""
        self._lanes.remove(lane)
        self.bytes_waiting -= sum(cost(message) for message in lane.waiting)

    def connected(self, *, session_present: bool) -> None:
        """Start a new connection. The broker redelivers unacknowledged messages of a resumed session."""
        self._connection += 1
        self._aliases.clear()
        self._unacknowledged.clear()
        if session_present:
            for lane in (self.main, *self._lanes):
                lane.waiting = deque(message for message in lane.waiting if not self._is_redelivered(message))
            self.bytes_waiting = sum(cost(message) for lane in (self.main, *self._lanes) for message in lane.waiting)
            self._unreleased = {packet_id: True for packet_id, popped in self._unreleased.items() if popped}
        else:
            self._unreleased.clear()
            self._session_start = self._connection

    def _is_redelivered(self, message: Message) -> bool:
        return message.receipt is not None and message.receipt.connection >= self._session_start

    def receive(self, publish: Publish) -> Packet | None:
        """Queue a PUBLISH; returns PUBREC only for a duplicate that the application has already received."""
        topic = self._topic_of(publish) if not publish.topic or publish.properties else publish.topic
        packet_id, receipt = publish.packet_id, None
        if packet_id is not None:
            if publish.qos == 2:
                if packet_id in self._unreleased:
                    return Pubrec(packet_id) if self._unreleased[packet_id] else None
                self._unreleased[packet_id] = False
            receipt = Receipt(packet_id, publish.qos, self._connection)
            self._unacknowledged.append(receipt)
        message = as_message(publish, topic, receipt)
        lane = self.main
        for other in self._lanes:
            if other.takes(topic):
                lane = other
                break
        lane.waiting.append(message)
        self.bytes_waiting += cost(message)
        return None

    def receive_pubrel(self, pubrel: Pubrel) -> Pubcomp:
        known = self._unreleased.pop(pubrel.packet_id, None) is not None
        return Pubcomp(pubrel.packet_id, Reason.SUCCESS if known else Reason.PACKET_IDENTIFIER_NOT_FOUND)

    def pop(self, messages_max: int | None, lane: Lane | None = None) -> list[Message]:
        """The oldest waiting messages of a lane [the main one]."""
        waiting = (self.main if lane is None else lane).waiting
        count = len(waiting) if messages_max is None else min(messages_max, len(waiting))
        popped = [waiting.popleft() for _ in range(count)]
        for message in popped:
            self.bytes_waiting -= cost(message)
            if not self._manual and message.receipt is not None:
                self._note_received(message.receipt)
        return popped

    def _note_received(self, receipt: Receipt) -> None:
        if receipt.qos == 2 and receipt.connection == self._connection and receipt.packet_id in self._unreleased:
            self._unreleased[receipt.packet_id] = True

    def acknowledge(self, messages: Iterable[Message]) -> Iterator[Puback | Pubrec]:
        """The acknowledgements that may be sent now: none overtakes one of an earlier message. MQTT 5.0, 4.6"""
        for message in messages:
            if (receipt := message.receipt) is not None and receipt.connection == self._connection:
                receipt.is_acknowledged = True
                self._note_received(receipt)
        unacknowledged = self._unacknowledged
        while unacknowledged and unacknowledged[0].is_acknowledged:
            receipt = unacknowledged.popleft()
            yield Puback(receipt.packet_id) if receipt.qos == 1 else Pubrec(receipt.packet_id)

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
