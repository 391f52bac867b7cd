"""Messages that a test publishes over MQTT, acknowledged, with rumq's own client."""

from __future__ import annotations

from typing import Any

import trio

from rumq.client import connect
from tests.broker_process import Address


def publish_all(broker: Address, messages: list[tuple[str, bytes, dict[str, Any]]]) -> None:
    """Topic, payload and properties of each, QoS 1."""

    async def run() -> None:
        async with connect(broker.host, broker.port) as client, trio.open_nursery() as nursery:
            for topic, payload, more in messages:
                nursery.start_soon(publish_one, client, topic, payload, more)

    trio.run(run)


async def publish_one(client: Any, topic: str, payload: bytes, more: dict[str, Any]) -> None:
    await client.publish(topic, payload, qos=1, properties=more)
