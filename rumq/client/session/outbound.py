"""QoS 1 and 2 handshakes of messages that we publish, and packet ids. MQTT 5.0, 4.3, 4.4, 4.9. No I/O."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rumq.client.session.messages import Outgoing
from rumq.client.session.topic_aliases import TopicAliases
from rumq.mqtt.errors import ProtocolViolation
from rumq.mqtt.packets import (
    Packet,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from rumq.mqtt.reasons import Reason

PACKET_ID_MAX = 65_535

# Called once, with the reason codes of the answer and its reason string.
Done = Callable[[tuple[Reason, ...], str], None]


@dataclass(slots=True)
class PendingPacket:
    """An unanswered packet. packet: what to resend on a new connection"""

    packet: Packet
    done: Done


class Outbound:
    """Unanswered packets by packet id, in the order they were sent."""

    def __init__(self, packet_id_max: int = PACKET_ID_MAX, topic_aliases: int = 0) -> None:
        """packet_id_max: those above are another's; topic_aliases: how many are used, if the broker allows"""
        self.aliases = TopicAliases(topic_aliases)
        self._packet_id_max = packet_id_max
        self._waiting: dict[int, PendingPacket] = {}
        self._last_id = 0
        self._publishes = 0
        self.receive_maximum = PACKET_ID_MAX  # of the broker; MQTT 5.0, 3.2.2.3.3

    @property
    def quota(self) -> int:
        """How many more QoS 1 and 2 messages may be sent now; one packet id stays free for a SUBSCRIBE."""
        return min(self.receive_maximum - self._publishes, self._packet_id_max - 1 - len(self._waiting))

    def publish(self, message: Outgoing, done: Done) -> Publish:
        """Assign a packet id to a QoS 1 or 2 message. Precondition: quota > 0."""
        packet_id = self._next_id()
        packet = Publish(
            message.topic, message.payload, message.qos, message.retain, False, packet_id, message.properties
        )
        self._waiting[packet_id] = PendingPacket(packet, done)
        self._publishes += 1
        return packet

    def request(self, build: Callable[[int], Packet], done: Done) -> Packet:
        """Assign a packet id to a SUBSCRIBE or UNSUBSCRIBE, which `build` makes from it."""
        packet_id = self._next_id()
        packet = build(packet_id)
        self._waiting[packet_id] = PendingPacket(packet, done)
        return packet

    def receive(self, packet: Puback | Pubrec | Pubcomp | Suback | Unsuback) -> Pubrel | None:
        """Process an answer; returns the PUBREL to send, if any. raises: ProtocolViolation for an unexpected one"""
        waiting = self._waiting.get(packet.packet_id)
        ours = waiting.packet if waiting else None
        match packet:
            case Pubrec():
                return self._receive_pubrec(packet, waiting)
            case Puback() if isinstance(ours, Publish) and ours.qos == 1:
                self._finish(packet, (packet.reason,))
            case Pubcomp() if isinstance(ours, Pubrel):
                self._finish(packet, (packet.reason,))
            case Pubcomp() if ours is None:
                pass  # the end of a handshake that we no longer track
            case Suback() if isinstance(ours, Subscribe):
                self._finish(packet, packet.reasons)
            case Unsuback() if isinstance(ours, Unsubscribe):
                self._finish(packet, packet.reasons)
            case _:
                raise unexpected_answer(packet)
        return None

    def _receive_pubrec(self, pubrec: Pubrec, waiting: PendingPacket | None) -> Pubrel | None:
        if waiting is None:
            return Pubrel(pubrec.packet_id, Reason.PACKET_IDENTIFIER_NOT_FOUND)
        match waiting.packet:
            case Publish(qos=2) if pubrec.reason.is_error:
                self._finish(pubrec, (pubrec.reason,))
                return None
            case Publish(qos=2) | Pubrel():
                # The broker owns the message from here on; only PUBREL is resent. MQTT 5.0, 4.3.3.
                waiting.packet = Pubrel(pubrec.packet_id)
                return waiting.packet
        raise unexpected_answer(pubrec)

    def resume(self, *, session_present: bool) -> list[Packet]:
        """Packets to resend on a new connection, in their original order. MQTT 5.0, 4.4.

        Where the broker lost our session, a QoS 2 message after its PUBREC counts as delivered.
        """
        again: list[Packet] = []
        for packet_id, waiting in list(self._waiting.items()):
            match waiting.packet:
                case Publish() as publish:
                    waiting.packet = publish if not session_present else replace(publish, dup=True)
                    again.append(waiting.packet)
                case Pubrel() if not session_present:
                    self._finish(Pubcomp(packet_id), (Reason.SUCCESS,))
                case packet:
                    again.append(packet)
        return again

    def withdraw(self, packet: Publish) -> None:
        """Release the packet id of a message that could not be sent."""
        assert packet.packet_id is not None
        del self._waiting[packet.packet_id]
        self._publishes -= 1

    def _finish(self, answer: Puback | Pubrec | Pubcomp | Suback | Unsuback, reasons: tuple[Reason, ...]) -> None:
        waiting = self._waiting.pop(answer.packet_id)
        self._publishes -= isinstance(waiting.packet, Publish | Pubrel)
        waiting.done(reasons, answer.properties.get("reason_string", ""))

    def _next_id(self) -> int:
        assert len(self._waiting) < self._packet_id_max, "precondition: quota > 0"
        while True:
            self._last_id = self._last_id % self._packet_id_max + 1
            if self._last_id not in self._waiting:
                return self._last_id


def unexpected_answer(packet: Puback | Pubrec | Pubcomp | Suback | Unsuback) -> ProtocolViolation:
    return ProtocolViolation(f"{type(packet).__name__.upper()} {packet.packet_id} answers nothing we sent")
