"""The limits of one listener: the settings of [mqtt], with what of other sections holds for its sessions."""

from __future__ import annotations

from typing import Final

from rumq.settings.table import Listener, Mqtt

EXPIRES_NEVER: Final = 0xFFFFFFFF


class Limits(Mqtt, frozen=True, kw_only=True):
    """Limits that CONNACK announces and every packet is checked against. MQTT 5.0, 3.2.2.3.

    connect_seconds_max: of the listener; durability: (stream, class) as CONNACK tells it, the catch-all last
    broker_id: for a bridge that asks; empty: none"""

    connect_seconds_max: float = Listener().connect_seconds_max
    durability: tuple[tuple[str, str], ...] = ()
    broker_id: str = ""
