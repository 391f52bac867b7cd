"""Tells a client that a replay has reached the end: a message of QoS 0 behind its records. docs/reference/replay.md."""

from __future__ import annotations

from router.effects import ReplayEnded
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties
from rumq.session.flow_control.delivery_window import DeliveryWindow

TOPIC = "$log/end"


def send(effect: ReplayEnded) -> None:
    flow = effect.reader.sink
    if not isinstance(flow, DeliveryWindow) or not flow.is_open:
        return
    (subscription,) = effect.reader.group.subscriptions
    properties = Properties()
    if subscription.identifier:
        properties["subscription_identifiers"] = [subscription.identifier]
    flow.outbox.write(encode(Publish(TOPIC, subscription.topic_filter.encode(), properties=properties), 5))
