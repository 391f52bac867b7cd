"""An outbox at work: brokers that are away, processes that are killed, files that are not as they should be.

By the real clock: a thread that writes would be taken for nobody's work."""

import functools
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from rumq.client import (
    Client,
    OutboxError,
    OutboxFull,
    OutboxInUse,
    OutboxOptions,
    Outgoing,
    Refused,
    connect,
    connect_over,
)
from rumq.client.outbox.forwarding import packet_id_of
from rumq.mqtt.packets import Connack, Disconnect, Packet, Pubcomp, Publish, Pubrec, Pubrel
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.broker_process import Rumqd
from tests.client.fake_broker import FakeBroker, Peer

RESUMED = Connack(session_present=True)


def timed(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def limited() -> None:
            with trio.fail_after(60):
                await test(*args, **kwargs)

        trio.run(limited)

    return run


# --- against a broker that does as the test says


async def away(path: Path, *payloads: bytes, **options: object) -> None:
    """Publish while there is no broker."""
    broker = FakeBroker()
    broker.is_up = False
    async with connect_over(
        broker.open_stream, store=OutboxOptions(str(path), leave_seconds_max=0, **options)
    ) as client:  # type: ignore[arg-type]
        await client.publish_batch([Outgoing("a", payload) for payload in payloads])


async def stored(peer: Peer, count: int) -> list[bytes]:
    """Take so many messages to the end of their handshakes."""
    found: list[bytes] = []
    done = 0
    while done < count:
        packet = await peer.receive()
        if isinstance(packet, Publish):
            found.append(packet.payload)
            await peer.send(Pubrec(packet.packet_id or 0))
        elif isinstance(packet, Pubrel):
            done += 1
            await peer.send(Pubcomp(packet.packet_id))
    return found


class Held:
    """A client with an outbox that waits for its end."""

    def __init__(self) -> None:
        self._scope, self._ended = trio.CancelScope(), trio.Event()

    async def hold(self, broker: FakeBroker, path: Path) -> None:
        with self._scope:
            async with connect_over(broker.open_stream, store=str(path)):
                await trio.sleep_forever()
        self._ended.set()

    async def end(self) -> None:
        """As one that is killed, it says no farewell."""
        self._scope.cancel()
        await self._ended.wait()


async def opened(broker: FakeBroker, path: Path, nursery: trio.Nursery) -> Held:
    held = Held()
    nursery.start_soon(held.hold, broker, path)
    return held


def publish(place: int, payload: bytes, *, dup: bool = False) -> Publish:
    return Publish("a", payload, 2, dup=dup, packet_id=packet_id_of(place))


@timed
async def test_what_was_published_without_a_broker_goes_to_the_next_one(tmp_path: Path) -> None:
    await away(tmp_path / "o", b"1", b"2")
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:
        await opened(broker, tmp_path / "o", nursery)
        peer, connect = await broker.accept()
        assert connect.client_id.startswith("outbox-") and not connect.clean_start
        assert connect.properties["session_expiry_interval"] == 7 * 86_400
        assert await stored(peer, 2) == [b"1", b"2"]
        nursery.cancel_scope.cancel()


@timed
async def test_a_process_that_died_leaves_the_rest_to_the_next_one_with_the_same_ids(tmp_path: Path) -> None:
    """Without PUBREC it is sent again, behind it it is released."""
    await away(tmp_path / "o", b"1", b"2", b"3")
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:
        held = await opened(broker, tmp_path / "o", nursery)
        peer, connect = await broker.accept()
        sent = [await peer.receive() for _ in range(3)]
        assert sent == [publish(place, b"%d" % (place + 1)) for place in range(3)]
        await peer.send(Pubrec(packet_id_of(0)))
        assert await peer.receive() == Pubrel(packet_id_of(0)), "the file knows of it"
        await held.end()
        assert await peer.gone()
        await opened(broker, tmp_path / "o", nursery)
        peer, again = await broker.accept(RESUMED)
        assert again.client_id == connect.client_id
        assert await peer.receive() == Pubrel(packet_id_of(0))
        await peer.send(Pubcomp(packet_id_of(0)))
        assert [await peer.receive(), await peer.receive()] == [
            publish(1, b"2", dup=True), publish(2, b"3", dup=True),
        ]  # fmt: skip
        nursery.cancel_scope.cancel()


@timed
async def test_a_session_that_is_lost_is_a_doubt_and_everything_is_sent_again(tmp_path: Path) -> None:
    await away(tmp_path / "o", b"1")
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        async def hold(*, task_status: trio.TaskStatus[Client]) -> None:
            async with connect_over(broker.open_stream, store=str(tmp_path / "o")) as client:
                task_status.started(client)
                await trio.sleep_forever()

        client: Client = await nursery.start(hold)
        peer, _ = await broker.accept()
        await peer.receive()
        before = client.outbox.doubtful
        await peer.hang_up()
        peer, _ = await broker.accept(Connack())
        assert await peer.receive() == publish(0, b"1")
        assert client.outbox.doubtful == before + 1
        nursery.cancel_scope.cancel()


@timed
async def test_what_the_broker_refuses_is_counted_and_what_it_cannot_take_now_is_tried_again(tmp_path: Path) -> None:
    await away(tmp_path / "o", b"1", b"2")
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        async def hold(*, task_status: trio.TaskStatus[Client]) -> None:
            async with connect_over(broker.open_stream, store=str(tmp_path / "o")) as client:
                task_status.started(client)
                await trio.sleep_forever()

        client: Client = await nursery.start(hold)
        peer, _ = await broker.accept()
        await peer.receive(), await peer.receive()
        said = Properties(reason_string="not yours")
        begin = trio.current_time()
        await peer.send(
            Pubrec(packet_id_of(0), Reason.NOT_AUTHORIZED, said), Pubrec(packet_id_of(1), Reason.QUOTA_EXCEEDED)
        )
        packets: list[Packet] = []
        while publish(1, b"2") not in packets:
            packets.append(await peer.receive())
        assert trio.current_time() - begin >= 1
        await peer.send(Pubrec(packet_id_of(1)))
        await client.outbox.wait_empty()
        assert client.outbox.progress.refused == 1
        assert [(refused.place, refused.text) for refused in client.outbox.refusals] == [(0, "not yours")]
        nursery.cancel_scope.cancel()


@timed
async def test_retained_messages_expiry_and_larger_ones_are_as_they_were_published(tmp_path: Path) -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        async def hold() -> None:
            async with connect_over(broker.open_stream, store=str(tmp_path / "o")) as client:
                await client.publish("a", "1", retain=True, properties=Properties(message_expiry_interval=9))
                await client.publish("a", b"x" * 200)
                await client.publish("a", "2", properties=Properties(content_type="text"))
                await client.outbox.wait_empty()
                assert client.outbox.progress.refused == 1
            nursery.cancel_scope.cancel()

        nursery.start_soon(hold)
        peer, _ = await broker.accept(Connack(properties=Properties(maximum_packet_size=100)))
        [first, second] = [await peer.receive() for _ in range(2)]
        assert (first.retain, first.properties, second.properties) == (
            True, {"message_expiry_interval": 9}, {"content_type": "text"},
        )  # fmt: skip
        await peer.send(Pubrec(first.packet_id), Pubrec(second.packet_id))
        while not isinstance(await peer.receive(), Disconnect):
            pass
        await peer.hang_up()


@timed
@pytest.mark.parametrize("version", [4, 5])
async def test_a_broker_without_qos_2_gets_qos_1_and_an_old_one_qos_2(tmp_path: Path, version: int) -> None:
    await away(tmp_path / "o", b"1")
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def hold() -> None:
            async with connect_over(broker.open_stream, store=str(tmp_path / "o"), version=version):
                await trio.sleep_forever()

        peer, _ = await broker.accept(Connack(properties=Properties(maximum_qos=1) if version == 5 else Properties()))
        assert (await peer.receive()).qos == (1 if version == 5 else 2)
        nursery.cancel_scope.cancel()


@timed
async def test_a_login_that_is_refused_is_told_and_what_is_published_is_kept(tmp_path: Path) -> None:
    """While the program goes on, and again when it leaves: then some of it has not gone."""
    broker = FakeBroker()

    async def publish() -> None:
        async with connect_over(broker.open_stream, store=str(tmp_path / "o")) as client:
            await client.publish_batch([])
            await client.publish("a", "1")
            with pytest.raises(Refused, match="0x87"):
                await client.outbox.wait_empty()
            assert client.outbox.waiting == 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.accept, Connack(reason=Reason.NOT_AUTHORIZED))
        with pytest.raises(Refused, match="0x87"):
            await publish()
        await opened(broker, tmp_path / "o", nursery)
        peer, _ = await broker.accept()
        assert await stored(peer, 1) == [b"1"]
        nursery.cancel_scope.cancel()


# --- limits and bad files


@timed
async def test_a_full_outbox_refuses_and_says_so(tmp_path: Path) -> None:
    async def fill() -> None:
        for number in range(1000):
            await away(tmp_path / "o", *[b"%d" % number * 100] * 100, bytes_max=1 << 18)

    with pytest.raises(OutboxFull, match="wait for the broker, raise bytes_max, or let it drop"):
        await fill()
    size = sum(file.stat().st_size for file in (tmp_path / "o").rglob("*.seg"))
    assert size <= 1 << 18


@timed
async def test_a_full_outbox_drops_the_oldest_if_asked_to_and_counts_them(tmp_path: Path) -> None:
    kept = OutboxOptions(str(tmp_path / "o"), 1 << 19, "drop-oldest", leave_seconds_max=0)
    broker = FakeBroker()
    broker.is_up = False
    async with connect_over(broker.open_stream, store=kept) as client:
        for number in range(300):
            await client.publish_batch([Outgoing("a", b"%d" % number * 100)] * 10)
        dropped, waiting = client.outbox.progress.dropped, client.outbox.waiting
        assert dropped > 0 and dropped + waiting == 3000
        assert client.outbox.bytes <= 1 << 19
    broker.is_up = True
    async with trio.open_nursery() as nursery:
        await opened(broker, tmp_path / "o", nursery)
        peer, _ = await broker.accept()
        first = await peer.receive()
        assert isinstance(first, Publish) and first.payload == b"%d" % (dropped // 10) * 100
        nursery.cancel_scope.cancel()


@timed
async def test_an_outbox_is_of_one_process_and_of_one_client(tmp_path: Path) -> None:
    broker = FakeBroker()
    broker.is_up = False
    place = OutboxOptions(str(tmp_path / "o"), leave_seconds_max=0)
    async with connect_over(broker.open_stream, store=place, client_id="pump-7"):
        with pytest.raises(OutboxInUse, match=r"another process holds it \(pid \d+\)"):
            async with connect_over(broker.open_stream, store=place):
                pass
    with pytest.raises(OutboxError, match="belongs to client id 'pump-7'"):
        async with connect_over(broker.open_stream, store=place, client_id="pump-8"):
            pass


@timed
async def test_files_of_another_version_and_a_directory_of_something_else_are_left_alone(tmp_path: Path) -> None:
    await away(tmp_path / "o", b"1")
    (tmp_path / "o" / "FORMAT").write_text("rumq 2\n")
    with pytest.raises(OutboxError, match="use the rumq that wrote it"):
        await away(tmp_path / "o", b"2")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutboxError):
        await away(tmp_path / "file", b"2")


@timed
async def test_damage_is_counted_and_the_rest_is_forwarded(tmp_path: Path) -> None:
    for payload in (b"first" * 100, b"second" * 100, b"third" * 100):
        await away(tmp_path / "o", payload)
    segments = sorted((tmp_path / "o" / "outbox").rglob("*.seg"))
    raw = bytearray(segments[0].read_bytes())
    raw[raw.index(b"firstfirst") + 3] ^= 1
    segments[0].write_bytes(raw)
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        async def hold(*, task_status: trio.TaskStatus[Client]) -> None:
            async with connect_over(broker.open_stream, store=str(tmp_path / "o")) as client:
                task_status.started(client)
                await trio.sleep_forever()

        client: Client = await nursery.start(hold)
        peer, _ = await broker.accept()
        payloads = [(await peer.receive()).payload[:5] for _ in range(2)]
        assert payloads == [b"secon", b"third"] and client.outbox.progress.damaged == 1
        nursery.cancel_scope.cancel()


# --- with a real broker


def messages_in(rumqd: Rumqd, topic: str) -> list[tuple[int, int]]:
    """(the first number of the process, number) of each."""

    def parsed(payload: bytes) -> tuple[int, int]:
        first, number = payload.split(b"/")
        return int(first), int(number)

    async def read() -> list[tuple[int, int]]:
        async with connect(*rumqd.address) as client:
            return [parsed(record.payload) async for record in client.replay(topic)]

    return trio.run(read)


class Publishing:
    """The process of `outbox_client`; `kept` is the last number that it said is on disk."""

    def __init__(self, port: int, path: Path, first: int, end: int) -> None:
        command = [sys.executable, "-m", "tests.client.outbox.outbox_client", str(port), str(path), "a/b"]
        self._process = subprocess.Popen([*command, str(first), str(end)], stdout=subprocess.PIPE, text=True)
        self.kept = first - 1
        self.is_forwarded = False

    def listen(self, until: int | None = None) -> None:
        """Until this number is kept, or it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == "forwarded":
                self.is_forwarded = True
            else:
                self.kept = int(line)
            if until is not None and self.kept >= until:
                return

    def kill(self) -> int:
        """kill -9; returns the next number to publish."""
        self._process.kill()
        self.listen()
        self._process.wait()
        return self.kept + 1


def test_each_message_is_in_the_log_once_and_in_order_though_its_client_is_killed_twice(tmp_path: Path) -> None:
    """Killed without a broker, and killed while it forwards; the broker is killed too."""
    rumqd = Rumqd(tmp_path / "data")
    rumqd.start()
    try:
        port = rumqd.address.port
        rumqd.flags = ("--port", str(port))
        rumqd.kill()
        client = Publishing(port, tmp_path / "o", 0, 10_000)
        client.listen(until=1500)
        first = client.kill()
        rumqd.start()
        client = Publishing(port, tmp_path / "o", first, 10_000)
        client.listen(until=first + 700)
        first = client.kill()
        client = Publishing(port, tmp_path / "o", first, 10_000)
        client.listen(until=first + 500)
        rumqd.kill()
        rumqd.start()
        client.listen()
        assert client.is_forwarded
        found = messages_in(rumqd, "a/b")
        assert {number for _, number in found} == set(range(10_000)), "nothing that was kept is missing"
        assert found == sorted(set(found)), "each once, in order"
    finally:
        rumqd.end()
