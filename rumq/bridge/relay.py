"""One direction of a bridge: PUBLISH, PUBREC, PUBREL and PUBCOMP go on with the packet ids that the source gave them.

MQTT 5.0, 4.3.3. A packet id in flight is unique in the source's session, so it is in the target's. Both sessions
outlive their connections: whatever ends, the source sends a packet again with the same id, and the target takes it
once. So nothing is kept here beyond a connection. docs/decisions/0071-a-bridge-relays-two-sessions.md. No I/O, no
clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from rumq.bridge.counts import RelayCounts
from rumq.bridge.topic_rules import TopicMap
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_name

VIA = "rumq-via"  # user property, one for each broker that a message has passed
DOUBTFUL = "rumq-doubtful"  # user property of a message that the target may have already
PACKET_BYTES_MAX = 2**28 + 4  # of MQTT

# A message that is refused so may be taken later; any other refusal stays one.
TEMPORARY_REFUSALS = frozenset({Reason.QUOTA_EXCEEDED, Reason.UNSPECIFIED_ERROR, Reason.SERVER_BUSY})

Refused = Callable[[str, Reason, str], None]  # topic, reason, text


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """What CONNACK of the target says.

    broker_id: of a rumq broker; "": not known
    was_lost: its session is a new one: messages that come again may be there already"""

    broker_id: str = ""
    packet_bytes_max: int = PACKET_BYTES_MAX
    qos_max: int = 2
    takes_retained: bool = True
    was_lost: bool = False


class Moves(NamedTuple):
    """Packets to send, in order."""

    to_source: list[Packet]
    to_target: list[Packet]


@dataclass(slots=True)
class InFlight:
    """A message of the source without an answer. message: as it went on, None: it did not; qos: the source's"""

    qos: int
    message: Publish | None
    is_answered: bool = False


class PacketRelay:
    """The messages of one direction during one connection to each side."""

    def __init__(
        self, topics: TopicMap, source_id: str, target: TargetLimits, counts: RelayCounts,
        refused: Refused = lambda *_: None,
    ) -> None:  # fmt: skip
        """source_id: the source's broker id, "" if it is not known; refused: told of each message given up"""
        self._topics, self._source_id, self._target = topics, source_id, target
        self._counts, self._refused = counts, refused
        self._in_flight: dict[int, InFlight] = {}  # by packet id, in the order of arrival
        self._again: dict[int, Publish] = {}  # by packet id: refused for now

    # --- from the source

    def publish(self, packet: Publish) -> Moves:
        message = self._maybe_message(packet)
        if packet.packet_id is None:
            if message is not None:
                self._note_relayed(message)
            return Moves([], [message] if message is not None else [])
        self._in_flight[packet.packet_id] = InFlight(packet.qos, message)
        if message is None or message.qos == 0:
            if message is not None:
                self._note_relayed(message)
            return Moves(self._answered(packet.packet_id), [message] if message is not None else [])
        return Moves([], [message])

    def pubrel(self, packet: Pubrel) -> Moves:
        """Also of an id whose message never went on: then the target says that it does not know the id."""
        if self._target.qos_max < 2:
            return Moves([Pubcomp(packet.packet_id)], [])
        return Moves([], [Pubrel(packet.packet_id)])

    # --- from the target

    def answer(self, packet: Puback | Pubrec | Pubcomp) -> Moves:
        if isinstance(packet, Pubcomp):
            return Moves([Pubcomp(packet.packet_id)], [])  # "not found" is as good: it was released before
        held = self._in_flight.get(packet.packet_id)
        if held is None or held.is_answered or held.message is None:
            return Moves([], [])
        reason = packet.reason
        if reason.is_error and reason != Reason.PACKET_IDENTIFIER_IN_USE:  # in use: the target has it
            if reason in TEMPORARY_REFUSALS:
                self._again[packet.packet_id] = held.message
                return Moves([], [])
            self._refuse(held.message.topic, reason, packet.properties.get("reason_string", reason.text))
        else:
            self._note_relayed(held.message)
        return Moves(self._answered(packet.packet_id), [])

    def take_again(self) -> list[Packet]:
        """What was refused for now, to be sent after a pause."""
        again, self._again = self._again, {}
        return [replace(message, dup=False) for message in again.values()]

    def _answered(self, packet_id: int) -> list[Packet]:
        """Answers leave in the order of the messages. MQTT 5.0, 4.6."""
        self._in_flight[packet_id].is_answered = True
        answers: list[Packet] = []
        while self._in_flight:
            each, held = next(iter(self._in_flight.items()))
            if not held.is_answered:
                break
            del self._in_flight[each]
            answers.append(Puback(each) if held.qos == 1 else Pubrec(each))
        return answers

    # --- messages

    def _maybe_message(self, packet: Publish) -> Publish | None:
        """The message as the target gets it; None: it does not."""
        topic = self._topics.maybe_target_topic(packet.topic)
        if topic is None:
            self._counts.unmapped += 1
            return None
        passed = [value for name, value in packet.properties.get("user_properties", ()) if name == VIA]
        if self._target.broker_id and self._target.broker_id in passed:
            self._counts.looped += 1
            return None
        message = replace(
            packet, topic=topic, qos=min(packet.qos, self._target.qos_max),
            retain=packet.retain and self._target.takes_retained, properties=self._properties(packet, passed),
        )  # fmt: skip
        if message.qos == 0:
            message = replace(message, packet_id=None, dup=False)
        return message if self._fits(message) else None

    def _properties(self, packet: Publish, passed: list[str]) -> Properties:
        """Without what belongs to the source's connection, and with the way so far."""
        properties: Properties = {**packet.properties}
        properties.pop("subscription_identifiers", None)
        properties.pop("topic_alias", None)
        added: list[tuple[str, str]] = []
        if self._source_id and self._source_id not in passed:
            added.append((VIA, self._source_id))
        if packet.dup and self._target.was_lost:
            self._counts.doubtful += 1
            added.append((DOUBTFUL, "1"))
        if added:
            properties["user_properties"] = [*properties.get("user_properties", ()), *added]
        return properties

    def _fits(self, message: Publish) -> bool:
        try:
            check_topic_name(message.topic)
            size = len(encode(message, 5)) if self._target.packet_bytes_max < PACKET_BYTES_MAX else 0
        except (MqttFault, ValueError) as fault:
            self._refuse(message.topic, Reason.TOPIC_NAME_INVALID, str(fault))
            return False
        if size > self._target.packet_bytes_max:
            text = f"{size} bytes, the target's maximum is {self._target.packet_bytes_max}"
            self._refuse(message.topic, Reason.PACKET_TOO_LARGE, text)
            return False
        return True

    def _note_relayed(self, message: Publish) -> None:
        self._counts.messages += 1
        self._counts.bytes += len(message.payload)

    def _refuse(self, topic: str, reason: Reason, text: str) -> None:
        self._counts.refused[reason.text] += 1
        self._refused(topic, reason, text)
