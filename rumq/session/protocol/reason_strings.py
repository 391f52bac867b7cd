"""Answers with a sentence of why, where the client can take one. MQTT 5.0, 3.2.2.3.9 and likewise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rumq.mqtt.encode import encode
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import REASONS_IN, Reason

WHY_MAX = 1000  # characters: it may have a piece of what the client has said, and must be an MQTT string

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link


def explained(link: Link, packet: Any, why: str | None) -> bytes:
    """A packet with a reason string, unless the client does not want one or it does not fit. MQTT-3.2.2-19."""
    why = why and why[:WHY_MAX]
    if why and link.version == 5 and link.wants_problem_information and link.limits.reason_strings:
        full = encode(
            type(packet)(**{**as_fields(packet), "properties": {**packet.properties, "reason_string": why}}),
            5,
        )
        if not link.client_max_packet or len(full) <= link.client_max_packet:
            return full
    return encode(packet, link.version)


def as_fields(packet: Any) -> dict[str, Any]:
    return {
        name: getattr(packet, name) for cls in type(packet).__mro__ for name in getattr(cls, "__slots__", ())
    }


def told_in(packet_type: PacketType, reason: Reason) -> Reason:
    """The reason code as it may be told: a second CONNECT, say, may have faults that belong in a CONNACK."""
    return reason if reason in REASONS_IN[packet_type] else Reason.PROTOCOL_ERROR
