"""The limits of one listener: the numbers of [mqtt] in config.toml, as the session layer needs them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that CONNACK announces and every packet is checked against. MQTT 5.0, 3.2.2.3."""

    packet_bytes_max: int = 16 * 2**20
    connect_bytes_max: int = 128 * 2**10
    topic_bytes_max: int = 4096
    topic_levels_max: int = 32
    receive_maximum: int = 1024
    inflight_max: int = 1000
    keep_alive_seconds_max: int = 65535
    topic_alias_maximum: int = 64
    topic_alias_out_maximum: int = 16
    session_expiry_seconds_max: int = 14 * 86_400
    sessions_max: int = 200_000
    subscriptions_max: int = 10_000
    subscriptions_bytes_max: int = 16 * 2**20
    wildcard_levels_max: int = 10_000
    all_subscriptions_bytes_max: int = 2 * 2**30
    all_wildcard_levels_max: int = 1_000_000
    new_topics_per_second_max: int = 100_000
    new_topic_visits_per_second_max: int = 200_000
    retain_available: bool = True
    wildcard_available: bool = True
    shared_available: bool = True
    subscription_identifiers_available: bool = True
    publisher_available: bool = True
    maximum_qos: int = 2
    client_id_bytes_max: int = 1024
    connect_seconds_max: float = 10.0
    outbox_bytes_max: int = 256 * 2**10
    reason_strings: bool = True
    durability: tuple[tuple[str, str], ...] = ()  # (stream, class), the catch-all last


EXPIRES_NEVER = 0xFFFFFFFF
