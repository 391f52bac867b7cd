"""The client against a broker that nobody here wrote, over a Unix socket: no port is taken."""

import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from rumq.client import Client, Message, NoResponse, OutboxOptions, Outgoing, Will, connect_over
from rumq.client.session.packet_stream import OpenStream

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
pytestmark = [
    pytest.mark.mosquitto,
    pytest.mark.skipif(MOSQUITTO is None, reason="mosquitto is not installed"),
]


@pytest.fixture(scope="module")
def open_stream() -> Iterator[OpenStream]:
    assert MOSQUITTO is not None
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "mosquitto.conf")
        lines = [
            "user root",
            f"listener 0 {folder}/socket",
            "allow_anonymous true",
            "log_dest stderr",
            "log_type information",
        ]
        config.write_text("\n".join(lines) + "\n")
        process = subprocess.Popen([MOSQUITTO, "-c", str(config)], stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            assert any("running" in line for line in process.stderr)
            # Nobody reads on, and what notices there are fit into the pipe.
            yield partial(trio.open_unix_socket, f"{folder}/socket")
        finally:
            process.terminate()
            process.communicate()


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        with trio.fail_after(60):
            await main()

    trio.run(limited)


async def payloads(client: Client, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        found += [message.payload for message in await client.receive_batch(messages_max=count - len(found))]
    return found


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_once_and_in_order(open_stream: OpenStream, version: int, qos: int) -> None:
    async def main() -> None:
        async with (
            connect_over(open_stream, version=version, client_id=f"sub-{version}{qos}") as subscriber,
            connect_over(open_stream, version=version) as publisher,
        ):
            assert await subscriber.subscribe(f"a/{version}/{qos}/#", qos=qos) == qos
            # To MQTT 3.1.1, mosquitto 2.0 delivers no more than 20 of a burst of QoS 2, though it took all.
            count = 20 if (version, qos) == (4, 2) else 100
            batch = [Outgoing(f"a/{version}/{qos}/x", b"%d" % number, qos) for number in range(count)]
            await publisher.publish_batch(batch)
            assert await payloads(subscriber, count) == [message.payload for message in batch]

    run(main)


def test_properties_arrive_as_they_were_sent(open_stream: OpenStream) -> None:
    async def main() -> None:
        properties = {
            "content_type": "text/plain",
            "correlation_data": b"\0\1",
            "response_topic": "answer",
            "user_properties": [("a", "1"), ("a", "2")],
        }
        async with connect_over(open_stream) as client:
            await client.subscribe("p", qos=1, identifier=7)
            await client.publish("p", "hello", qos=1, properties=properties)
            [message] = await client.receive_batch()
            assert message.properties == properties | {"subscription_identifiers": [7]}

    run(main)


def test_a_session_outlives_its_connection(open_stream: OpenStream) -> None:
    async def main() -> None:
        join = partial(connect_over, open_stream, client_id="stays", session_expiry=60, clean_start=False)
        async with join() as client:
            assert not client.connack.session_present
            await client.subscribe("s", qos=1)
        async with connect_over(open_stream) as publisher:
            await publisher.publish("s", b"meanwhile", qos=1)
        async with join() as client:
            assert client.connack.session_present
            assert await payloads(client, 1) == [b"meanwhile"]
        async with join() as client:  # acknowledged by leaving: it does not come again
            await client.publish("s", b"next", qos=1)
            assert await payloads(client, 1) == [b"next"]

    run(main)


def test_retained_messages_and_wills(open_stream: OpenStream) -> None:
    async def main() -> None:
        async with connect_over(open_stream) as watcher:
            with pytest.raises(ZeroDivisionError):
                await vanish()
            await watcher.subscribe("will", qos=1)
            [message] = await watcher.receive_batch()
            assert (message.payload, message.retain) == (b"gone", True)
            await watcher.publish("will", b"", retain=True, qos=1)

    async def vanish() -> None:
        async with connect_over(open_stream, will=Will("will", b"gone", 1, True)) as client:
            await client.publish("x", b"", qos=1)
            raise ZeroDivisionError

    run(main)


def test_a_keep_alive_is_kept(open_stream: OpenStream) -> None:
    """Mosquitto hangs up after one and a half; this is the one test here that lets real time pass.

    A ping is due after half of it: a busy machine may be late by as much as the whole."""

    async def main() -> None:
        async with connect_over(open_stream, keep_alive=4) as client:
            with trio.move_on_after(7.5):
                await client.receive_batch()
            await client.publish("k", b"", qos=1)

    run(main)


def test_topic_aliases_are_understood(open_stream: OpenStream) -> None:
    async def main() -> None:
        async with connect_over(open_stream, topic_aliases=5) as client:
            await client.subscribe("alias/#", qos=1)
            assert client.connack.properties["topic_alias_maximum"] > 0
            for turn in range(3):
                await client.publish_batch([Outgoing(f"alias/{number}", b"%d" % turn, 1) for number in range(20)])
            found = []
            while len(found) < 60:
                found += [(message.topic, message.payload) for message in await client.receive_batch()]
            assert found == [(f"alias/{number}", b"%d" % turn) for turn in range(3) for number in range(20)]

    run(main)


def test_requests_are_answered(open_stream: OpenStream) -> None:
    async def main() -> None:
        async def upper(message: Message) -> bytes:
            return message.payload.upper()

        async with connect_over(open_stream) as server, connect_over(open_stream) as client:
            async with trio.open_nursery() as nursery:
                await nursery.start(server.respond, "up/#", upper)
                assert (await client.request("up/1", "hello")).payload == b"HELLO"
                nursery.cancel_scope.cancel()
            with pytest.raises(NoResponse, match="nobody subscribes"):
                await client.request("up/1", "hello")

    run(main)


@pytest.mark.parametrize("version", [4, 5])
def test_an_outbox_gives_each_message_once_though_its_client_ends_on_the_way(
    open_stream: OpenStream, version: int, tmp_path: Path
) -> None:
    """mosquitto keeps the session, with the packet ids, while it runs."""

    async def main() -> None:
        topic = f"outbox/{version}"
        kept = OutboxOptions(str(tmp_path / "o"), syncs=False, leave_seconds_max=0)
        async with connect_over(open_stream, receive_maximum=20) as subscriber:
            await subscriber.subscribe(topic, qos=1)
            for part in range(4):
                with trio.CancelScope() as scope:
                    async with connect_over(open_stream, store=kept, version=version) as client:
                        await client.publish_batch(
                            [Outgoing(topic, b"%d" % n) for n in range(part * 50, part * 50 + 50)]
                        )
                        scope.cancel()  # some are on their way
            async with connect_over(open_stream, store=kept, version=version) as client:
                await client.outbox.wait_empty()
                assert client.outbox.doubtful == 0
            assert await payloads(subscriber, 200) == [b"%d" % number for number in range(200)]

    run(main)
