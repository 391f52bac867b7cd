"""A message of a queue as a PUBLISH, and back. docs/reference/queues.md, "Over MQTT"

User properties of ours begin with `rumq-`; who pushes cannot set such: they are left out. The last one of a name
counts, for the broker appends its own."""
# compiled: warm

from __future__ import annotations

from datetime import datetime

from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties
from rumq.queues.rules.messages import Delivered, Push
from rumq.queues.rules.names import DELAYED, ROOT, MessageId, split_topic

OWN = "rumq-"
KEY, ORIGIN, TRIES, DUE, EXPIRY = "rumq-key", "rumq-origin", "rumq-tries", "rumq-due", "rumq-expiry"
OFFSET, TIME = "rumq-offset", "rumq-time"


class NoPlace(ValueError):
    """A message without its place in the log: it has no id."""


def properties_of(push: Push, expiry_seconds: int, *own: tuple[str, str]) -> Properties:
    """expiry_seconds: from its arrival on; own: further properties of ours"""
    found = [(name, value) for name, value in push.headers if not name.startswith(OWN)]
    if push.key is not None:
        found.append((KEY, push.key))
    found += own
    properties = Properties(message_expiry_interval=expiry_seconds)
    if found:
        properties["user_properties"] = found
    if push.content_type:
        properties["content_type"] = push.content_type
    return properties


def delivered(packet: Publish) -> Delivered:
    """A message that came with its place. raises: NoPlace"""
    own = own_properties(packet)
    if OFFSET not in own:
        raise NoPlace(packet.topic)
    message_id = MessageId(split_topic(packet.topic)[1], int(own[OFFSET]) + 1)
    return message_of(packet, message_id, micros(own.get(TIME, "")))


def message_of(packet: Publish, message_id: MessageId, pushed_us: int) -> Delivered:
    own = own_properties(packet)
    return Delivered(
        message_id, packet.payload, 1, pushed_us, own.get(KEY),
        tuple(each for each in packet.properties.get("user_properties", ()) if not each[0].startswith(OWN)),
        packet.properties.get("content_type", ""), own.get(ORIGIN, ""), int(own.get(TRIES, 0)),
    )  # fmt: skip


def own_properties(packet: Publish) -> dict[str, str]:
    """Those of ours."""
    found = packet.properties.get("user_properties", ())
    return {name: value for name, value in found if name.startswith(OWN)}


def micros(rfc3339: str) -> int:
    """µs since 1970 of a time as the broker writes it; 0 for none."""
    return round(datetime.fromisoformat(rfc3339).timestamp() * 1e6) if rfc3339 else 0


def expiry_of(packet: Publish) -> float:
    """Seconds for which it is still of use."""
    return float(packet.properties.get("message_expiry_interval", float("inf")))


def delayed_topic(topic: str) -> str:
    """Where a message for a topic waits until it is due."""
    return DELAYED + topic.removeprefix(ROOT)


def due_topic(delayed: str) -> str:
    """The reverse."""
    return ROOT + delayed.removeprefix(DELAYED)
