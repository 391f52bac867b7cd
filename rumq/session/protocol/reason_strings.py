"""Reason strings and reason codes in answers: what the client asked for and has room for. MQTT 5.0, 3.2.2.3.9."""

from __future__ import annotations

from typing import Any

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import REASONS_IN, Reason
from rumq.session.connection.client_state import Client

WHY_MAX = 1000  # characters: it may quote the client, and must be an MQTT string

Explainable = p.Connack | p.Puback | p.Pubrec | p.Suback | p.Disconnect


def explained(client: Client, packet: Explainable, why: str | None) -> bytes:
    """A packet with a reason string, if the client may have one and it fits. MQTT-3.1.2-29, MQTT-3.2.2-19

    Acknowledgements have one only for clients that say Request Problem Information 1 themselves: the standard takes
    that for the default, but clients that never said it fail to parse such acknowledgements."""
    why = why and why[:WHY_MAX]
    is_last = isinstance(packet, p.Connack | p.Disconnect)
    if why and client.version == 5 and (client.wants_reason_strings or is_last) and client.limits.reason_strings:
        properties = {**packet.properties, "reason_string": why}
        full = encode(type(packet)(**{**as_fields(packet), "properties": properties}), 5)
        if not client.packet_bytes_max or len(full) <= client.packet_bytes_max:
            return full
    return encode(packet, client.version)


def as_fields(packet: Explainable) -> dict[str, Any]:
    return {name: getattr(packet, name) for cls in type(packet).__mro__ for name in getattr(cls, "__slots__", ())}


def allowed_reason(packet_type: PacketType, reason: Reason) -> Reason:
    """The reason code as it may be sent: a second CONNECT, say, may have faults that belong in a CONNACK."""
    return reason if reason in REASONS_IN[packet_type] else Reason.PROTOCOL_ERROR
