"""Which QoS messages have at the other broker, a rumq or mosquitto: the lower one of publisher's and line's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

import rumq
from rumq.client import connect
from tests.process.bridge.test_bridge_process import bridge, mosquitto, waited

Other = Callable[[Path], AbstractContextManager[str]]


@contextmanager
def a_rumq(folder: Path) -> Any:
    with rumq.broker() as broker:
        yield broker.url


@contextmanager
def a_mosquitto(folder: Path) -> Any:
    with mosquitto(folder) as (url, _):
        yield url


@pytest.mark.parametrize("other", [a_rumq, a_mosquitto])
def test_a_message_has_the_lower_qos_of_its_publisher_and_its_line(other: Other, tmp_path: Path) -> None:
    """However it travels: nothing of that is to be seen."""
    with other(tmp_path) as url, rumq.broker(bridge=[bridge(url, "one/# out 1", "two/# out 2")]) as edge:
        connected = waited(lambda: edge.events("bridge.connected"))[0]
        assert connected["exactly_once"] is (other is a_rumq)
        found = trio.run(relayed, edge.url, url)
    assert found == {
        ("one", 0): 0, ("one", 1): 1, ("one", 2): 1,
        ("two", 0): 0, ("two", 1): 1, ("two", 2): 2,
    }  # fmt: skip


async def relayed(source: str, target: str) -> dict[tuple[str, int], int]:
    """(topic, QoS of the publisher) -> QoS at the target."""
    found = {}
    with trio.fail_after(60):
        async with connect(target) as subscriber, connect(source) as publisher:
            await subscriber.subscribe("+/x", qos=2)
            for topic in ("one", "two"):
                for qos in (0, 1, 2):
                    await publisher.publish(f"{topic}/x", str(qos).encode(), qos=qos)
            async for message in subscriber.messages():
                assert {name for name, _ in message.properties.get("user_properties", ())} <= {"rumq-via"}
                found[message.topic.partition("/")[0], int(message.payload)] = int(message.qos)
                if len(found) == 6:
                    break
    return found
