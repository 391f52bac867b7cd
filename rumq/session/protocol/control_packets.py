"""Packets that are not on the hot path, one at a time: SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT, AUTH and the rest.

MQTT 5.0, 3.8 to 3.15."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import PacketTooLarge, ProtocolViolation
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason
from rumq.mqtt.wire import Fields
from rumq.session.handshake.reauthentication import Reauthentication
from rumq.session.protocol import subscribe as requests
from rumq.session.protocol.batched_subscribe import LISTS, SHORT_BYTES, BatchedRequest

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link

PACKETS_A_TURN = 256  # of one client
PROPERTIES_BYTES_MAX = 1 << 16  # of a packet that is no PUBLISH: all of them are looked at in one turn
PINGRESP = encode(p.Pingresp(), 4)


def take(link: Link, first_byte: int, body: bytes) -> int:
    """A packet that the kernel does not take by itself; returns how many it counts for."""
    if link.wire is not None:
        link.wire.others += 1
    if len(body) > SHORT_BYTES and first_byte >> 4 in LISTS:
        if link.version == 5:
            check_properties(body)
        BatchedRequest(link, first_byte, body).begin()
        return 1
    if len(body) > PROPERTIES_BYTES_MAX and first_byte >> 4 != PacketType.PUBLISH:
        raise PacketTooLarge(f"a packet of {len(body)} bytes that is no PUBLISH and names no filters")
    packet = decode(first_byte, body, link.version)
    serve(link, packet)
    if isinstance(packet, p.Subscribe | p.Unsubscribe):
        return 1 + PACKETS_A_TURN // requests.FILTERS_A_TURN * len(packet.filters)
    return 1


def check_properties(body: bytes) -> None:
    """Refuse more properties than are decoded at once. raises: MqttFault"""
    fields = Fields(body)
    fields.two_bytes("packet identifier")
    length = fields.variable_integer("length of the properties")
    if length > PROPERTIES_BYTES_MAX:
        raise PacketTooLarge(f"{length} bytes of properties, the limit is {PROPERTIES_BYTES_MAX}")


def serve(link: Link, packet: p.Packet) -> None:
    """One packet that is not on the hot path."""
    if isinstance(packet, p.Pingreq):
        answer_ping(link)
    elif isinstance(packet, p.Subscribe):
        requests.check(link, packet.filters)
        subscribe = partial(requests.subscribe, link, packet)
        if link.house.confirm(
            requests.wanted(link, packet.filters),
            partial(link.go_on, subscribe),
            publishers=requests.asks_publisher(link, packet.properties),
        ):
            subscribe()
        else:
            link.pause()
    elif isinstance(packet, p.Unsubscribe):
        requests.unsubscribe(link, packet)
    elif isinstance(packet, p.Puback | p.Pubrec | p.Pubrel | p.Pubcomp):
        requests.acknowledgement(link, packet)
    elif isinstance(packet, p.Publish):
        assert link.wire is not None
        link.house.refuse_publish(link, packet, link.wire.partition)
    elif isinstance(packet, p.Disconnect):
        disconnect(link, packet)
    elif isinstance(packet, p.Connect):
        raise ProtocolViolation("a second CONNECT")
    elif isinstance(packet, p.Auth):
        if link.proving is None:
            link.proving = Reauthentication(link)
        link.proving.take(packet)
    else:
        raise ProtocolViolation(f"a client sent {type(packet).__name__.upper()}")


def answer_ping(link: Link) -> None:
    """Answer behind the acknowledgements that are on their way, so that one says: all before is done."""
    assert link.wire is not None
    link.wire.acks += PINGRESP
    link.wire.answers += 1


def disconnect(link: Link, packet: p.Disconnect) -> None:
    """The client leaves. MQTT 5.0, 3.14; raises: MqttFault"""
    session = link.session
    assert session is not None
    if "server_reference" in packet.properties:
        raise ProtocolViolation("a DISCONNECT from a client names another server")
    interval = packet.properties.get("session_expiry_interval")
    if interval is not None:
        if session.expiry_seconds == 0 and interval:
            raise ProtocolViolation("DISCONNECT sets a session expiry that CONNECT had left at 0")
        session.expiry_seconds = min(interval, link.limits.session_expiry_seconds_max)
    with_will = packet.reason != Reason.NORMAL_DISCONNECTION
    link.house.event("client.disconnected", link, reason=int(packet.reason))
    link.end(with_will=with_will)
