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
    """A packet with a reason string, unless the client does not want one or it does not fit. MQTT-3.2.2-19."""
    why = why and why[:WHY_MAX]
    if why and client.version == 5 and client.wants_reason_strings and client.limits.reason_strings:
        properties = {**packet.properties, "reason_string": why}
        full = encode(type(packet)(**{**as_fields(packet), "properties": properties}), 5)
        if not client.packet_bytes_max or len(full) <= client.packet_bytes_max:
            return full
    return encode(packet, client.version)


def as_fields(packet: Explainable) -> dict[str, Any]:
    return {
        name: getattr(packet, name) for cls in type(packet).__mro__ for name in getattr(cls, "__slots__", ())
    }


def allowed_reason(packet_type: PacketType, reason: Reason) -> Reason:
    """The reason code as it may be sent: a second CONNECT, say, may have faults that belong in a CONNACK."""
    return reason if reason in REASONS_IN[packet_type] else Reason.PROTOCOL_ERROR
