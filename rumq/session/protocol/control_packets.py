"""Packets that are not on the hot path, one at a time: requests, PINGREQ, DISCONNECT, AUTH, long acknowledgements.

MQTT 5.0, 3.4 to 3.15. `packet_order` says which of them a client may send."""

from __future__ import annotations

from functools import partial

from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import PacketTooLarge, ProtocolViolation
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason
from rumq.mqtt.wire import Fields
from rumq.session.connection import packet_order
from rumq.session.connection.client_state import Client, RequestResponder, run_confined
from rumq.session.journal.recorder import REFUSED
from rumq.session.protocol import publish_checks
from rumq.session.protocol import subscribe as requests
from rumq.session.protocol.batched_subscribe import LISTS, SHORT_BYTES, BatchedRequest
from rumq.session.state.session_owner import expiry_seconds_of

PACKETS_A_TURN = 256  # of one client
CHANGE_SECONDS_MAX = 10.0  # a client that waits to change filters asks again after so long
PROPERTIES_BYTES_MAX = 1 << 16  # of a packet that is no PUBLISH: all of them are checked in one turn
PINGRESP = encode(p.Pingresp(), 4)
PUBACK, PUBREC, PUBREL, PUBCOMP = (
    0x40,
    0x50,
    0x62,
    0x70,
)  # first bytes, as the kernel and the journal have them


def serve(responder: RequestResponder, first_byte: int, body: bytes) -> int:
    """Serve a packet that the kernel leaves over; returns how many it counts for. raises: MqttFault"""
    client, packet_type = responder.client, first_byte >> 4
    if client.wire is not None:
        client.wire.others += 1
    if packet_type in LISTS and (seconds := client.broker.publishing.change_filters(client)):
        responder.pause()
        wait_to_change(responder, first_byte, body, seconds)
        return 1
    return serve_now(responder, first_byte, body)


def wait_to_change(responder: RequestResponder, first_byte: int, body: bytes, seconds: float) -> None:
    """Serve a SUBSCRIBE or UNSUBSCRIBE later: the topics that its holder's last ones have matched again were many."""
    broker = responder.client.broker

    def again() -> None:
        if seconds := broker.publishing.change_filters(responder.client):
            wait_to_change(responder, first_byte, body, seconds)
        else:
            responder.resume(finish)

    def finish() -> None:
        serve_now(responder, first_byte, body)

    broker.later(min(seconds, CHANGE_SECONDS_MAX), partial(run_confined, responder, again))


def serve_now(responder: RequestResponder, first_byte: int, body: bytes) -> int:
    client, packet_type = responder.client, first_byte >> 4
    if len(body) > SHORT_BYTES and packet_type in LISTS:
        if client.version == 5:
            check_properties(body)
        BatchedRequest(responder, first_byte, body).begin()
        return 1
    if len(body) > PROPERTIES_BYTES_MAX and packet_type != PacketType.PUBLISH:
        raise PacketTooLarge(f"a packet of {len(body)} bytes that is no PUBLISH and names no filters")
    packet = decode(first_byte, body, client.version)
    packet_order.check(responder.state, packet_type)
    dispatch(responder, packet)
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


def dispatch(responder: RequestResponder, packet: p.Packet) -> None:
    """Serve one packet that may come now. raises: MqttFault"""
    if isinstance(packet, p.Pingreq):
        answer_ping(responder.client)
    elif isinstance(packet, p.Subscribe):
        subscribe(responder, packet)
    elif isinstance(packet, p.Unsubscribe):
        requests.unsubscribe(responder, packet)
    elif isinstance(packet, p.Puback | p.Pubrec | p.Pubrel | p.Pubcomp):
        acknowledge(responder, packet)
    elif isinstance(packet, p.Publish):
        publish(responder, packet)
    elif isinstance(packet, p.Disconnect):
        disconnect(responder, packet)
    else:
        assert isinstance(packet, p.Auth) and responder.reauthentication is not None
        responder.reauthentication.receive(packet)


def subscribe(responder: RequestResponder, packet: p.Subscribe) -> None:
    """Serve a SUBSCRIBE once every shard sends what its filters match."""
    client = responder.client
    requests.check(client, packet.filters)
    grant = partial(requests.subscribe, responder, packet)
    publishers = requests.asks_publisher(client, packet.properties)
    wanted = requests.wanted(client, packet.filters)
    if client.broker.delivery.confirm(wanted, partial(responder.resume, grant), publishers=publishers):
        grant()
    else:
        responder.pause()


def publish(responder: RequestResponder, packet: p.Publish) -> None:
    """Refuse a PUBLISH for a partition that takes none for now."""
    client = responder.client
    assert client.wire is not None
    is_unanswerable = packet.qos > 0 and client.version != 5
    partition = client.wire.partition
    refusal = client.broker.publishing.refuse_publish(responder, partition, is_unanswerable=is_unanswerable)
    if refusal is not None:
        publish_checks.refuse(client, packet, refusal)


def acknowledge(responder: RequestResponder, packet: p.Puback | p.Pubrec | p.Pubrel | p.Pubcomp) -> None:
    """An acknowledgement with a reason code or properties; the kernel takes the short ones. MQTT 5.0, 3.4 to 3.7."""
    responder.ensure_active()
    client, acks, packet_id = responder.client, responder.acks, packet.packet_id
    assert client.wire is not None
    wire, window = client.wire, client.wire.window
    if isinstance(packet, p.Pubrel):
        known = wire.release(packet_id)
        if not known and client.broker.publishing.undecided.concerns(responder.session):
            take = partial(acknowledge, responder, packet)
            client.broker.publishing.undecided.wait_for_all(responder, take)
            return
        if known:
            acks.record(PUBREL, packet_id)
        reason = Reason.SUCCESS if known else Reason.PACKET_IDENTIFIER_NOT_FOUND
        acks.promise(encode(p.Pubcomp(packet_id, reason), client.version), barrier=False)
    elif window is None:
        if isinstance(packet, p.Pubrec) and packet.reason < Reason.UNSPECIFIED_ERROR:
            responder.send(p.Pubrel(packet_id, Reason.PACKET_IDENTIFIER_NOT_FOUND))
    elif packet.reason >= Reason.UNSPECIFIED_ERROR and not isinstance(packet, p.Pubcomp):
        if window.refuse(packet_id):
            acks.record(REFUSED, packet_id)
    elif isinstance(packet, p.Pubrec):
        known = window.acknowledge(PUBREC, packet_id) >= 0
        if known:
            acks.record(PUBREC, packet_id)
        reason = Reason.SUCCESS if known else Reason.PACKET_IDENTIFIER_NOT_FOUND
        acks.promise(encode(p.Pubrel(packet_id, reason), client.version), barrier=False)
    else:
        head = PUBACK if isinstance(packet, p.Puback) else PUBCOMP
        if window.acknowledge(head, packet_id) >= 0:
            acks.record(head, packet_id)


def answer_ping(client: Client) -> None:
    """Answer behind the acknowledgements that are on their way, so that one says: all before is done."""
    assert client.wire is not None
    client.wire.answer(PINGRESP)
    client.wire.answers += 1


def disconnect(responder: RequestResponder, packet: p.Disconnect) -> None:
    """The client leaves. MQTT 5.0, 3.14; raises: MqttFault"""
    client = responder.client
    assert client.session is not None
    session = client.session
    if "server_reference" in packet.properties:
        raise ProtocolViolation("a DISCONNECT from a client names another server")
    interval = packet.properties.get("session_expiry_interval")
    if interval is not None:
        if session.expiry_seconds == 0 and interval:
            raise ProtocolViolation("DISCONNECT sets a session expiry that CONNECT had left at 0")
        session.expiry_seconds = expiry_seconds_of(interval, session.owner, client.limits)
    client.broker.event("client.disconnected", client, reason=int(packet.reason))
    responder.end(with_will=packet.reason != Reason.NORMAL_DISCONNECTION)
