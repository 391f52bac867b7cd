"""Our half of the QoS 1 and 2 handshakes for what we publish, and the packet ids. MQTT 5.0, 4.3, 4.4, 4.9.

Packets come in, packets go out, and whoever waits is told by a callback.
Refuses to know bytes, sockets and waiting.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rumq.client.messages import Outgoing
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

# Told once: the reasons of the answer, and its reason string.
Done = Callable[[tuple[Reason, ...], str], None]


@dataclass(slots=True)
class Waiting:
    """A packet of ours that the broker must still answer. packet: what to send again on a new connection."""

    packet: Packet
    done: Done


class Outbound:
    """Everything sent and not yet answered, by packet id, in the order it was sent."""

    def __init__(self) -> None:
        self._waiting: dict[int, Waiting] = {}
        self._last_id = 0
        self._publishes = 0
        self.receive_maximum = PACKET_ID_MAX  # of the broker; MQTT 5.0, 3.2.2.3.3

    @property
    def quota(self) -> int:
        """How many more QoS 1 and 2 messages may be sent now; room is left for a SUBSCRIBE's id."""
        return min(self.receive_maximum - self._publishes, PACKET_ID_MAX - 1 - len(self._waiting))

    @property
    def unanswered(self) -> int:
        return len(self._waiting)

    def publish(self, message: Outgoing, done: Done) -> Publish:
        """Number a QoS 1 or 2 message. Ask `quota` first."""
        packet_id = self._next_id()
        packet = Publish(
            message.topic, message.payload, message.qos, message.retain, False, packet_id, message.properties
        )
        self._waiting[packet_id] = Waiting(packet, done)
        self._publishes += 1
        return packet

    def ask(self, made: Callable[[int], Packet], done: Done) -> Packet:
        """Number a SUBSCRIBE or UNSUBSCRIBE, which `made` builds from its id."""
        packet_id = self._next_id()
        packet = made(packet_id)
        self._waiting[packet_id] = Waiting(packet, done)
        return packet

    def receive(self, packet: Puback | Pubrec | Pubcomp | Suback | Unsuback) -> Pubrel | None:
        """Take an answer; returns what to answer it with. ProtocolViolation if nothing asked for it."""
        waiting = self._waiting.get(packet.packet_id)
        ours = waiting.packet if waiting else None
        match packet:
            case Pubrec():
                return self._received(packet, waiting)
            case Puback() if isinstance(ours, Publish) and ours.qos == 1:
                self._finish(packet, (packet.reason,))
            case Pubcomp() if isinstance(ours, Pubrel):
                self._finish(packet, (packet.reason,))
            case Pubcomp() if ours is None:
                pass  # it ends a handshake that we had forgotten
            case Suback() if isinstance(ours, Subscribe):
                self._finish(packet, packet.reasons)
            case Unsuback() if isinstance(ours, Unsubscribe):
                self._finish(packet, packet.reasons)
            case _:
                raise nothing_asked(packet)
        return None

    def _received(self, pubrec: Pubrec, waiting: Waiting | None) -> Pubrel | None:
        if waiting is None:
            return Pubrel(pubrec.packet_id, Reason.PACKET_IDENTIFIER_NOT_FOUND)
        match waiting.packet:
            case Publish(qos=2) if pubrec.reason.is_error:
                self._finish(pubrec, (pubrec.reason,))
                return None
            case Publish(qos=2) | Pubrel():
                # From here on the message is the broker's; only the PUBREL is sent again. MQTT 5.0, 4.3.3.
                waiting.packet = Pubrel(pubrec.packet_id)
                return waiting.packet
        raise nothing_asked(pubrec)

    def resume(self, *, session_present: bool) -> list[Packet]:
        """What a new connection begins with, in the order it was first sent. MQTT 5.0, 4.4.

        Where the broker lost our session, a QoS 2 message after its PUBREC is the broker's and done.
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

    def forget(self, packet: Publish) -> None:
        """Take back what was numbered and could not be sent."""
        assert packet.packet_id is not None
        del self._waiting[packet.packet_id]
        self._publishes -= 1

    def _finish(
        self, answer: Puback | Pubrec | Pubcomp | Suback | Unsuback, reasons: tuple[Reason, ...]
    ) -> None:
        waiting = self._waiting.pop(answer.packet_id)
        self._publishes -= isinstance(waiting.packet, Publish | Pubrel)
        waiting.done(reasons, answer.properties.get("reason_string", ""))

    def _next_id(self) -> int:
        assert len(self._waiting) < PACKET_ID_MAX, "ask quota first"
        while True:
            self._last_id = self._last_id % PACKET_ID_MAX + 1
            if self._last_id not in self._waiting:
                return self._last_id


def nothing_asked(packet: Puback | Pubrec | Pubcomp | Suback | Unsuback) -> ProtocolViolation:
    return ProtocolViolation(f"{type(packet).__name__.upper()} {packet.packet_id} answers nothing we sent")
