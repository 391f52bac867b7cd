"""A small broker that does what MQTT 5.0 asks of one, in memory, a packet at a time; it loses what it may lose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import takewhile

from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason

Undo = Callable[[], object]


class RuleBroken(Exception):
    """By a client."""


@dataclass
class Session:
    """taken: inbound QoS 2, id -> message; given: outbound QoS 1 without PUBACK, in order"""

    taken: dict[int, p.Publish] = field(default_factory=dict)
    filters: set[str] = field(default_factory=set)
    given: dict[int, p.Publish] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Answer:
    """On its way to a client. cause: what it answers; undo: what was done for that, where that can be lost still"""

    packet: p.Packet
    cause: p.Packet
    undo: Undo | None = None


class ModelBroker:
    """log: what was published with QoS 2; at_release: it publishes that at its PUBREL, not at its PUBLISH, as the
    standard lets it choose (4.3.3)

    slow: what a client had published when its connection was taken over is published behind the SUBSCRIBE of the next
    connection; supersedes: what was retained before that is not sent any more, what replaces it comes live
    """

    def __init__(
        self, *, receive_maximum: int = 4, at_release: bool = False, slow: bool = False, supersedes: bool = False
    ) -> None:
        self.receive_maximum, self.at_release = receive_maximum, at_release
        self.slow, self.supersedes = slow, supersedes
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, p.Publish] = {}
        self.log: list[p.Publish] = []
        self.connections: dict[str, Connection] = {}

    def payloads(self) -> list[bytes]:
        return [message.payload for message in self.log]

    def fall(self, keeps: Callable[[p.Packet], bool]) -> None:
        """Crash and come back. What was done for a packet whose answer nobody has had is kept or not."""
        for connection in self.connections.values():
            for answer in reversed(connection.answers):
                if answer.undo is not None and not keeps(answer.cause):
                    answer.undo()
            connection.answers, connection.arrived, connection.late = [], [], []
            connection.closed = True

    def lose_sessions(self) -> None:
        self.sessions.clear()

    def keep(self, topic: str, message: p.Publish | None) -> None:
        """Have a topic's retained message be this."""
        self.retained.pop(topic, None)
        if message is not None and message.payload:
            self.retained[topic] = message

    def write(self, packet: p.Publish) -> p.Publish:
        self.log.append(replace(packet))
        return self.log[-1]

    def strike(self, entry: p.Publish | None) -> None:
        """Out of the log. By identity: two rows may be alike."""
        self.log[:] = [message for message in self.log if message is not entry]


class Connection:
    """One client's. What it sends waits in `arrived`; what it is sent, in `answers`, until it is taken."""

    def __init__(self, broker: ModelBroker, connect: p.Connect) -> None:
        self._broker, self._client_id = broker, connect.client_id
        present = connect.client_id in broker.sessions and not connect.clean_start
        self.late: list[p.Packet] = []  # of connections before this one
        if (other := broker.connections.get(connect.client_id)) is not None:
            other.closed = True
            if present and broker.slow:
                published = takewhile(lambda packet: isinstance(packet, p.Publish | p.Pubrel), other.arrived)
                self.late = [*other.late, *published]
        broker.connections[connect.client_id] = self
        if not present:
            broker.sessions[connect.client_id] = Session()
        self.session = broker.sessions[connect.client_id]
        self.closed = False
        self.connack = p.Connack(present, properties=Properties(receive_maximum=broker.receive_maximum))
        self._reader = FrameReader(version=5)
        self.arrived: list[p.Packet] = []
        given = self.session.given.values()
        self.answers = [Answer(replace(message, dup=True), connect) for message in given]
        self._cause: p.Packet = connect

    def send(self, chunk: bytes) -> None:
        self._reader.receive(chunk)
        self.arrived += [decode(first, body, 5) for first, body in self._reader.frames()]

    def output(self, many: Callable[[int], int], comps: Callable[[int], int]) -> bytes:
        """What the client receives now, of a kind in order. many: how many of so many; comps: the same of PUBCOMPs"""
        released = [answer for answer in self.answers if isinstance(answer.packet, p.Pubcomp)]
        others = [answer for answer in self.answers if answer not in released]
        taken = released[: comps(len(released))] + others[: many(len(others))]
        self.answers = [answer for answer in self.answers if answer not in taken]
        return b"".join(encode(answer.packet, 5) for answer in taken)

    def work(self) -> None:
        """Take the next packet that arrived."""
        self._take_packet(self.arrived.pop(0))

    def _take_packet(self, packet: p.Packet) -> None:
        self._cause = packet
        match packet:
            case p.Publish(qos=2):
                self._take(packet)
            case p.Publish():
                self._publish(packet)
            case p.Pubrel():
                self._release(packet.packet_id)
            case p.Subscribe():
                self._subscribe(packet)
            case p.Unsubscribe():
                self.session.filters.discard(packet.filters[0])
                self._send(p.Unsuback(packet.packet_id, (Reason.SUCCESS,)))
            case p.Puback():
                # MQTT-4.6.0-2: in the order in which they were sent.
                if next(iter(self.session.given)) != packet.packet_id:
                    raise RuleBroken("PUBACKs in another order than PUBLISHes")
                del self.session.given[packet.packet_id]
            case p.Disconnect():
                assert packet.properties == {"session_expiry_interval": 0}
                del self._broker.sessions[self._client_id]
                self.closed = True
            case _:
                raise AssertionError(packet)

    def _take(self, packet: p.Publish) -> None:
        taken, packet_id = self.session.taken, packet.packet_id
        assert packet_id is not None
        if packet_id in taken:
            self._send(p.Pubrec(packet_id))
            return
        if len(taken) >= self._broker.receive_maximum:
            raise RuleBroken("more than the receive maximum")
        taken[packet_id] = packet
        entry = None if self._broker.at_release else self._broker.write(packet)

        def undo() -> None:
            taken.pop(packet_id, None)
            self._broker.strike(entry)

        self._send(p.Pubrec(packet_id), undo)

    def _release(self, packet_id: int) -> None:
        taken = self.session.taken
        if (packet := taken.pop(packet_id, None)) is None:
            self._send(p.Pubcomp(packet_id, Reason.PACKET_IDENTIFIER_NOT_FOUND))
            return
        entry = self._broker.write(packet) if self._broker.at_release else None

        def undo() -> None:
            taken[packet_id] = packet
            self._broker.strike(entry)

        self._send(p.Pubcomp(packet_id), undo)

    def _publish(self, packet: p.Publish) -> None:
        before, topic = self._broker.retained.get(packet.topic), packet.topic
        assert packet.packet_id is not None
        if packet.retain:
            self._broker.keep(topic, packet)
        self._send(p.Puback(packet.packet_id), lambda: packet.retain and self._broker.keep(topic, before))
        if topic in self.session.filters:
            self._give(replace(packet, retain=False))

    def _subscribe(self, packet: p.Subscribe) -> None:
        topic = packet.filters[0].topic_filter
        self.session.filters.add(topic)
        self._send(p.Suback(packet.packet_id, (Reason.GRANTED_QOS_1,)))
        late, self.late = self.late, []
        is_replaced = any(isinstance(each, p.Publish) and each.retain for each in late)
        if topic in self._broker.retained and not (is_replaced and self._broker.supersedes):
            self._give(replace(self._broker.retained[topic], retain=True))
        answered, self.answers = self.answers, []
        for each in late:
            self._take_packet(each)
        # Acknowledgements were for a connection that is gone.
        self.answers = [*answered, *(each for each in self.answers if isinstance(each.packet, p.Publish))]

    def _give(self, packet: p.Publish) -> None:
        packet_id = max(self.session.given, default=0) + 1
        self.session.given[packet_id] = replace(packet, packet_id=packet_id, dup=False)
        self._send(self.session.given[packet_id])

    def _send(self, packet: p.Packet, undo: Undo | None = None) -> None:
        self.answers.append(Answer(packet, self._cause, undo))
