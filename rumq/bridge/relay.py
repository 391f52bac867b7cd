"""One direction of a bridge: PUBLISH, PUBREC, PUBREL and PUBCOMP go on with the packet ids that the source gave them.

MQTT 5.0, 4.3.3. A packet id in flight is unique in the source's session, so it is in the target's. Both sessions
outlive their connections: whatever ends, the source sends a packet again with the same id, and the target takes it
once. So nothing is kept here beyond a connection. docs/decisions/0071-a-bridge-relays-two-sessions.md. Runs of ordinary
packets are relayed by a kernel, which does the same. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from rumq.bridge.counts import RelayCounts
from rumq.bridge.kernels.relay_run import InFlight, InFlightMessages, RelayRun
from rumq.bridge.topic_rules import TopicMap
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_name

VIA = "rumq-via"  # user property, one for each broker that a message has passed
DOUBTFUL = "rumq-doubtful"  # user property of a message that the target may have already
PACKET_BYTES_MAX = 2**28 + 4  # of MQTT
LARGE_BYTES = 2**27  # of messages above it is seen whether they can be a packet
TOPICS_MAX = 100_000  # names of topics that are mapped already, in each direction; above it they begin anew
TOPICS_BYTES_MAX = 2**24  # likewise
PACKET_OBJECT_BYTES = 256  # of a packet in memory, about

# A message that is refused so may be taken later; any other refusal stays one.
TEMPORARY_REFUSALS = frozenset({Reason.QUOTA_EXCEEDED, Reason.UNSPECIFIED_ERROR, Reason.SERVER_BUSY})

Refused = Callable[[str, Reason, str], None]  # topic, reason, text


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """What CONNACK of the target says.

    broker_id: of a rumq broker; "": not known; version: of MQTT, 4 is 3.1.1
    was_lost: its session is a new one: messages that come again may be there already
    receive_maximum: messages that it takes without an answer"""

    broker_id: str = ""
    packet_bytes_max: int = PACKET_BYTES_MAX
    qos_max: int = 2
    takes_retained: bool = True
    was_lost: bool = False
    version: int = 5
    receive_maximum: int = 65_535


class Moves(NamedTuple):
    """Packets to send, in order."""

    to_source: list[Packet]
    to_target: list[Packet]


class PacketRelay:
    """The messages of one direction during one connection to each side."""

    def __init__(
        self, topics: TopicMap, source_id: str, target: TargetLimits, counts: RelayCounts,
        refused: Refused = lambda *_: None,
    ) -> None:  # fmt: skip
        """source_id: the source's broker id, "" if it is not known; refused: told of each message given up"""
        self._topics, self._source_id, self._target = topics, source_id, target
        self._counts, self._refused = counts, refused
        self._in_flight = InFlightMessages()
        self._again: dict[int, Publish] = {}  # by packet id: refused for now
        self._names: dict[bytes, bytes] = {}  # topic at the source -> at the target, for runs
        self._names_bytes = 0

    def run(self, back: PacketRelay) -> RelayRun:
        """What relays ordinary packets of the source by itself. back: the other direction"""
        return RelayRun(
            self._in_flight, back._in_flight, self._names, self._map_topic, self._source_id.encode(), self._target,
            back.target_version == 5, self.target_version == 5,
        )  # fmt: skip

    @property
    def target_version(self) -> int:
        return self._target.version

    @property
    def target_packet_bytes_max(self) -> int:
        return self._target.packet_bytes_max

    def ids_in_flight(self) -> list[int]:
        """Packet ids of messages without an answer, in the order of arrival."""
        return list(self._in_flight.ids())

    @property
    def is_full(self) -> bool:
        """Whether the target takes no further message of QoS 1 or 2 before it answers one, with PUBCOMP for QoS 2."""
        return bool(self._in_flight.on_way() >= self._target.receive_maximum)

    @property
    def waits_for_pubrel(self) -> bool:
        """Whether the target takes no further message, and the source's PUBREL for one would help."""
        return self.is_full and self._in_flight.unreleased_count() > 0

    @property
    def waits_for_nothing_else(self) -> bool:
        """Whether all that the target takes at once waits for the source's PUBREL."""
        return bool(self._in_flight.unreleased_count() >= self._target.receive_maximum)

    def has_room(self, packet: Publish) -> bool:
        """Whether a message can be sent to the target now."""
        return packet.packet_id is None or not self.is_full or self.is_on_way(packet)

    def is_on_way(self, packet: Publish) -> bool:
        """Whether the target has it already: the source sends it again."""
        return packet.packet_id is not None and self._in_flight.is_on_way(packet.packet_id)

    def maybe_held(self, packet_id: int) -> InFlight | None:
        """The message with this id, while it is in flight."""
        return self._in_flight.maybe_at(packet_id)

    def count_taken(self) -> None:
        """Add to the counts what runs relayed since the last time."""
        self._counts.messages += self._in_flight.taken
        self._counts.bytes += self._in_flight.taken_bytes
        self._in_flight.taken = self._in_flight.taken_bytes = 0

    # --- from the source

    def publish(self, packet: Publish) -> Moves:
        message = self._maybe_message(packet)
        if packet.packet_id is None:
            if message is not None:
                self._note_relayed(len(packet.payload))
            return Moves([], [message] if message is not None else [])
        self._in_flight.add(packet.packet_id, packet.qos, len(packet.payload), message)
        if message is None or message.qos == 0:
            if message is not None:
                self._note_relayed(len(packet.payload))
            return Moves(self._answered(packet.packet_id), [message] if message is not None else [])
        return Moves([], [message])

    def pubrel(self, packet: Pubrel) -> Moves:
        """Also of an id whose message never went on: then the target says that it does not know the id."""
        if self._target.qos_max < 2:
            self._in_flight.note_complete(packet.packet_id)
            return Moves([Pubcomp(packet.packet_id)], [])
        self._in_flight.note_released(packet.packet_id)
        return Moves([], [Pubrel(packet.packet_id)])

    def refuse_large(self, packet: Publish, size: int) -> Moves:
        """A message of which only the beginning was read. packet: without payload and properties; size: of all"""
        if (topic := self._topics.maybe_target_topic(packet.topic)) is None:
            self._counts.unmapped += 1
        else:
            self._refuse_large(topic, size)
        if packet.packet_id is None:
            return Moves([], [])
        self._in_flight.add(packet.packet_id, packet.qos, 0, None)
        return Moves(self._answered(packet.packet_id), [])

    # --- from the target

    def answer(self, packet: Puback | Pubrec | Pubcomp) -> Moves:
        if isinstance(packet, Pubcomp):
            self._in_flight.note_complete(packet.packet_id)
            return Moves([Pubcomp(packet.packet_id)], [])  # "not found" is as good: it was released before
        held = self._in_flight.maybe_at(packet.packet_id)
        if held is None or held.is_answered or held.packet is None:
            return Moves([], [])
        reason = packet.reason
        if reason.is_error and reason != Reason.PACKET_IDENTIFIER_IN_USE:  # in use: the target has it
            if reason in TEMPORARY_REFUSALS:
                self._again[packet.packet_id] = message_of(held, self._target.version)
                return Moves([], [])
            self._refuse(
                message_of(held, self._target.version).topic,
                reason,
                packet.properties.get("reason_string", reason.text),
            )
        else:
            self._note_relayed(held.payload_bytes)
        return Moves(self._answered(packet.packet_id), [])

    def note_dropped(self) -> None:
        """A message of QoS 0 for which there was no room."""
        self._counts.dropped += 1

    def take_again(self) -> list[Packet]:
        """What was refused for now, to be sent after a pause."""
        again, self._again = self._again, {}
        return [replace(message, dup=False) for message in again.values()]

    def _answered(self, packet_id: int) -> list[Packet]:
        """Answers leave in the order of the messages. MQTT 5.0, 4.6."""
        self._in_flight.note_answered(packet_id)
        answers: list[Packet] = []
        while (held := self._in_flight.maybe_take()) is not None:
            answers.append(Puback(held.packet_id) if held.qos == 1 else Pubrec(held.packet_id))
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
            is_limited = self._target.packet_bytes_max < PACKET_BYTES_MAX or held_bytes(message) > LARGE_BYTES
            size = len(encode(message, self._target.version)) if is_limited else 0
        except (MqttFault, ValueError) as fault:
            self._refuse(message.topic, Reason.TOPIC_NAME_INVALID, str(fault))
            return False
        if size > self._target.packet_bytes_max:
            self._refuse_large(message.topic, size)
            return False
        return True

    def _map_topic(self, name: bytes) -> bytes | None:
        """For a run: the name at the target; None: `publish` decides."""
        try:
            topic = name.decode()
            check_topic_name(topic)
            target_topic = self._topics.maybe_target_topic(topic)
            if target_topic is None:
                return None
            check_topic_name(target_topic)
        except (MqttFault, ValueError):
            return None
        mapped = target_topic.encode()
        if len(self._names) >= TOPICS_MAX or self._names_bytes > TOPICS_BYTES_MAX:
            self._names.clear()
            self._names_bytes = 0
        self._names[name] = mapped
        self._names_bytes += len(name) + len(mapped)
        return mapped

    def _note_relayed(self, payload_bytes: int) -> None:
        self._counts.messages += 1
        self._counts.bytes += payload_bytes

    def _refuse_large(self, topic: str, size: int) -> None:
        text = f"{size} bytes, the target's maximum is {self._target.packet_bytes_max}"
        self._refuse(topic, Reason.PACKET_TOO_LARGE, text)

    def _refuse(self, topic: str, reason: Reason, text: str) -> None:
        self._counts.refused[reason.text] += 1
        self._refused(topic, reason, text)


def held_bytes(packet: Packet) -> int:
    """What a packet that waits takes in memory, about."""
    if not isinstance(packet, Publish):
        return PACKET_OBJECT_BYTES
    given = packet.properties
    pairs = sum(len(name) + len(value) for name, value in given.get("user_properties", ()))
    others = len(given.get("response_topic", "")) + len(given.get("content_type", ""))
    return (
        PACKET_OBJECT_BYTES + len(packet.topic) + len(packet.payload) + pairs + others
        + len(given.get("correlation_data", b""))
    )  # fmt: skip


def message_of(held: InFlight, version: int) -> Publish:
    """Decoded where a run relayed it: only what is refused is asked for."""
    if isinstance(held.packet, Publish):
        return held.packet
    header_len, _ = frame_at(held.packet, 0, len(held.packet)) or (0, 0)
    message = decode(held.packet[0], held.packet[header_len:], version)
    assert isinstance(message, Publish)
    return message
