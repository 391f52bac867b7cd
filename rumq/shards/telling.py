"""Tell the operator: every event of the broker's own thread goes through here, with its level.

The list of events is docs/events.md. Knows no client, no log."""

from __future__ import annotations

from typing import Any

from rumq.events import get_logger

LEVELS = {
    "auth.failed": "error",
    "broker.failed": "error",
    "broker.turn_slow": "warning",
    "client.crashed": "error",
    "clock.jumped": "warning",
    "client.refused": "warning",
    "secrets.exposed": "warning",
    "mosquitto.left_out": "warning",
    "permission.refused": "warning",
    "connection.refused": "warning",
    "listener.accept_failed": "warning",
    "listener.closed": "warning",
    "listener.open": "warning",
    "listener.overloaded": "warning",
    "log.failed": "error",
    "log.full": "error",
    "log.gap": "error",
    "log.offline": "error",
    "log.recovered": "warning",
    "log.unreachable": "error",
    "publish.slowed": "warning",
    "retention.held": "warning",
    "settings.refused": "error",
    "shard.crashing": "error",
    "shard.died": "error",
    "shard.failed": "error",
    "shard.link_failed": "error",
    "shard.lost": "warning",
    "topic.refused": "warning",
}


def tell(event: str, /, **fields: Any) -> None:
    """Write one event. An `exc_info` field adds the exception that is being handled."""
    floor = event.partition(".")[0]
    getattr(get_logger(f"rumq.{floor}"), LEVELS.get(event, "info"))(event, **fields)
