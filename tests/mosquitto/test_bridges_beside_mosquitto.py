"""One mosquitto.conf with a bridge, run by mosquitto and by rumqd: the same messages arrive at both ends, each once."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

import rumq
from bench.peers.peer import free_port
from rumq.client import Client, connect
from tests.mosquitto.mosquitto_process import MOSQUITTO, running

pytestmark = pytest.mark.skipif(
    MOSQUITTO is None, reason="mosquitto is not installed here (Debian's package mosquitto)"
)
CONF = """
user root
listener {port} 127.0.0.1
allow_anonymous true
connection centre
address 127.0.0.1:{centre}
bridge_protocol_version mqttv50
notifications false
restart_timeout 1
topic up/# out 2
topic down/# in 2
topic shared/# both 2
topic temp/# both 1 house/ munich/
topic "" out 1 only/this that
topic other/# out 0 "" far/
"""
AT_EDGE = ("up/1", "down/not", "shared/edge", "house/temp/1", "temp/not", "only/this", "only/this/not", "other/1")
AT_CENTRE = ("down/1", "up/not", "shared/centre", "munich/temp/2", "house/not", "that/not")
SECONDS_MAX = 60


async def relayed(edge: int, centre: int) -> tuple[list[str], list[str]]:
    """What a subscriber gets at either broker, of one message to each topic, and of one that comes behind them all."""
    async with AsyncExitStack() as stack:
        ends = [await stack.enter_async_context(connected(port)) for port in (edge, centre)]
        await wait_for_bridge(ends[0], ends[1])
        for client, topics in zip(ends, (AT_EDGE, AT_CENTRE), strict=True):
            for topic in topics:
                await client.publish(topic, b"x", qos=2)
        await ends[0].publish("shared/end-of-edge", b"", qos=2)
        await ends[1].publish("shared/end-of-centre", b"", qos=2)
        return await heard(ends[0]), await heard(ends[1])


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Client]:
    async with connect("127.0.0.1", port) as client:
        await client.subscribe("#", qos=2)
        yield client


async def wait_for_bridge(edge: Client, centre: Client) -> None:
    """Both ways."""
    for client, other in ((edge, centre), (centre, edge)):
        with trio.fail_after(SECONDS_MAX):
            while True:
                await client.publish("shared/probe", b"", qos=1)
                with trio.move_on_after(0.2):
                    async for message in other.messages():
                        if message.topic == "shared/probe":
                            break
                    break


async def heard(client: Client) -> list[str]:
    """Topics up to the ends of both, without probes."""
    found: list[str] = []
    with trio.fail_after(SECONDS_MAX):
        async for message in client.messages():
            found.append(message.topic)
            if {"shared/end-of-edge", "shared/end-of-centre"} <= set(found):
                break
    with trio.move_on_after(0.5):  # nothing may come behind them
        async for message in client.messages():
            found.append(message.topic)
    return sorted(topic for topic in found if topic != "shared/probe")


def test_a_bridge_relays_what_mosquitto_s_does(tmp_path: Path) -> None:
    found = []
    for name in ("mosquitto", "rumqd"):
        folder = tmp_path / name
        folder.mkdir()
        conf, port = folder / "mosquitto.conf", free_port()
        with rumq.broker() as centre:
            conf.write_text(CONF.format(port=port, centre=centre.port))
            command = [MOSQUITTO or "", "-c", str(conf)]
            if name == "rumqd":
                run = [sys.executable, "-m", "rumq", "run"]
                command = [*run, "--mosquitto-conf", str(conf), "--data", str(folder / "d")]
            with running(command, port):
                found.append(trio.run(relayed, port, centre.port))
    assert found[0] == found[1]
    at_edge, at_centre = found[1]
    assert {"down/1", "house/temp/2", "shared/centre"} <= set(at_edge) and "up/not" not in at_edge
    assert {"up/1", "munich/temp/1", "shared/edge", "that", "far/other/1"} <= set(at_centre)
    assert len(at_edge) == len(set(at_edge)) and len(at_centre) == len(set(at_centre)), "each once"
