"""One client, connected to two brokers: it does the same at both, and keeps what it gets of each.

What it gets is acknowledged at once, unless it withholds that. Knows no script and no comparison."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.conformance import wire
from tests.conformance.peer import Address, Ended, Peer
from tests.conformance.wire import Kind, Packet, Prop
from tests.mosquitto.random_sessions.actions import Come, Leave, Publish, Subscribe, Unsubscribe

# What a broker may choose: whether it says that nobody was there, and how it counts seconds down.
NO_MATCHING_SUBSCRIBERS, EXPIRY_STEP = 0x10, 1000


@dataclass
class Got:
    """answers: to what the client did; messages: as `heard` makes them"""

    answers: list[tuple[object, ...]] = field(default_factory=list)
    messages: list[tuple[object, ...]] = field(default_factory=list)


class End:
    """The client's end at one broker."""

    def __init__(self, address: Address, come: Come, client_id: str, got: Got) -> None:
        self.got, self._version, self._withholds = got, come.version, False
        self._last_id = 0
        self._peer = Peer(address, come.version)
        self._peer.send(
            wire.connect(client_id, come.version, clean=come.clean, properties=come.properties, will=come.will)
        )
        connack = self._peer.expect(Kind.CONNACK)
        got.answers.append(("CONNACK", connack.code, connack.session_present))

    def subscribe(self, action: Subscribe) -> None:
        self._ask(wire.subscribe(self._next_id(), action.filters, action.properties, self._version), Kind.SUBACK)

    def unsubscribe(self, action: Unsubscribe) -> None:
        self._ask(wire.unsubscribe(self._next_id(), action.filters, version=self._version), Kind.UNSUBACK)

    def publish(self, action: Publish) -> None:
        number = self._next_id() if action.qos else 0
        data = wire.publish(
            action.topic, action.payload, action.qos, number, retain=action.retain, properties=action.properties,
            version=self._version,
        )  # fmt: skip
        if action.qos == 0:
            self._peer.send(data)
        elif action.qos == 1:
            self._ask(data, Kind.PUBACK)
        else:
            self._ask(data, Kind.PUBREC)
            self._ask(wire.ack(Kind.PUBREL, number), Kind.PUBCOMP)

    def withhold(self) -> None:
        self._withholds = True

    def leave(self, action: Leave) -> None:
        if action.reason is not None and self._version < 5:
            self._peer.leave()
        elif action.reason is not None:
            self._peer.leave(action.reason, action.properties)
        else:
            self._peer.close()

    def taken_over(self) -> None:
        """Another one has come with its name: everything up to the end. mosquitto 2.0 sends no DISCONNECT."""
        packets = self._peer.rest_until_end()
        self.got.messages += [heard(packet) for packet in packets if packet.kind == Kind.PUBLISH]
        self._peer.close()

    def look(self) -> None:
        """Take what has come."""
        self._ask(wire.PINGREQ, Kind.PINGRESP, is_kept=False)

    def close(self) -> None:
        self._peer.close()

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _ask(self, data: bytes, kind: Kind, *, is_kept: bool = True) -> None:
        """Send something, and take all until its answer."""
        self._peer.send(data)
        while (packet := self._peer.receive()).kind != kind:
            self._take(packet)
        if is_kept:
            code = 0 if packet.code == NO_MATCHING_SUBSCRIBERS else packet.code
            self.got.answers.append((kind.name, packet.packet_id, code, *packet.codes))

    def _take(self, packet: Packet) -> None:
        if packet.kind == Kind.PUBLISH:
            self.got.messages.append(heard(packet))
            if packet.qos and not self._withholds:
                self._peer.send(wire.ack(Kind.PUBACK if packet.qos == 1 else Kind.PUBREC, packet.packet_id))
        elif packet.kind == Kind.PUBREL:
            self._peer.send(wire.ack(Kind.PUBCOMP, packet.packet_id))
        else:
            raise Ended(f"{packet.kind.name}, reason {packet.code:#x}")


def heard(packet: Packet) -> tuple[object, ...]:
    """A message as it is compared: topic, payload, QoS, retain, DUP, properties in any order.

    One that is sent again has the identifier of its subscription as that is today at rumq, so none after UNSUBSCRIBE,
    and that of the first time at mosquitto: the standard leaves it open, and it is not compared."""
    told = []
    for number, value in packet.properties:
        if packet.dup and number == Prop.SUBSCRIPTION_ID:
            continue
        if number == Prop.MESSAGE_EXPIRY and isinstance(value, int):
            value = round(value / EXPIRY_STEP) * EXPIRY_STEP
        told.append((number, value))
    return packet.topic, packet.payload, packet.qos, packet.retain, packet.dup, tuple(sorted(told, key=repr))
