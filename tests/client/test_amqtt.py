"""The client against amqtt's broker, which speaks MQTT 3.1.1 only."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from rumq.client import Client, OutboxOptions, Outgoing, connect


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    command = [sys.executable, "-m", "tests.client.amqtt_broker"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.communicate()


async def numbers(client: Client, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += [int(message.payload) for message in await client.receive_batch()]
    return found


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_once_and_in_order(port: int, qos: int) -> None:
    async def main() -> None:
        with trio.fail_after(60):
            async with (
                connect("127.0.0.1", port, version=4, client_id=f"sub-{qos}") as subscriber,
                connect("127.0.0.1", port, version=4, client_id=f"pub-{qos}") as publisher,
            ):
                await subscriber.subscribe(f"a/{qos}", qos=qos)
                await publisher.publish_batch([Outgoing(f"a/{qos}", b"%d" % n, qos) for n in range(50)])
                assert await numbers(subscriber, 50) == list(range(50))

    trio.run(main)


def test_an_outbox_is_forwarded(port: int, tmp_path: Path) -> None:
    async def main() -> None:
        with trio.fail_after(60):
            async with (
                connect("127.0.0.1", port, version=4, client_id="sub") as subscriber,
                connect("127.0.0.1", port, version=4, store=OutboxOptions(str(tmp_path / "o"))) as publisher,
            ):
                await subscriber.subscribe("o", qos=1)
                await publisher.publish_batch([Outgoing("o", b"%d" % n) for n in range(100)])
                assert await numbers(subscriber, 100) == list(range(100))
                await publisher.outbox.wait_empty()

    trio.run(main)
