"""Attempts at rows over real connections that are cut, to a rumqd that is killed and to a mosquitto that is started
again: each row once. No Spark is needed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow as pa
import trio

from bench.peers.peer import free_port
from rumq.client import Client, connect
from rumq.errors import ClientError
from rumq.sink.broker_check import open_to
from rumq.sink.sink_connection import SinkPartition, publish_all
from rumq.sink.sink_options import SinkOptions, parse_sink_options
from tests.broker_process import Address, Rumqd
from tests.conformance.broker import accepts

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
ROWS, A_BATCH = 300, 70


class Broker(Protocol):
    address: Address

    def start(self) -> None: ...
    def end(self) -> None: ...
    def fall(self) -> None:
        """Be gone and come back."""


class FallingRumqd(Rumqd):
    def fall(self) -> None:
        self.kill()
        self.start()


class Mosquitto:
    """With persistence, which it writes when it is stopped in order."""

    def __init__(self, folder: Path) -> None:
        self.address = Address("127.0.0.1", free_port())
        self._config = folder / "mosquitto.conf"
        self._config.write_text(
            f"user root\nlistener {self.address.port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
            "set_tcp_nodelay true\n"
            f"persistence true\npersistence_location {folder}/\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert MOSQUITTO is not None
        self._process = subprocess.Popen([MOSQUITTO, "-c", str(self._config)], stderr=subprocess.DEVNULL)
        while not accepts(self.address):
            assert self._process.poll() is None

    def fall(self) -> None:
        self.end()
        self.start()

    def end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


@pytest.fixture(params=["rumqd", "rumqd, two shards", "mosquitto"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made: Any
    if request.param == "mosquitto":
        if MOSQUITTO is None:
            pytest.skip("mosquitto is not installed")
        made = Mosquitto(tmp_path)
    else:
        config = tmp_path / "config.toml"
        config.write_text(f"[shards]\ncount = {2 if 'two' in request.param else 1}\n[mqtt]\nreceive_maximum = 40\n")
        made = FallingRumqd(tmp_path / "data", "--config", str(config))
    made.start()
    yield made
    made.end()


class CutStream(trio.abc.Stream):
    """Breaks at its n-th call, in the middle of what is sent then."""

    def __init__(self, inner: trio.abc.Stream, calls: int) -> None:
        self._inner, self._calls = inner, calls

    async def _count(self) -> bool:
        self._calls -= 1
        if self._calls == 0:
            return True
        if self._calls < 0:
            raise trio.BrokenResourceError("cut by the test")
        return False

    async def send_all(self, data: Any) -> None:
        if await self._count():
            await self._inner.send_all(bytes(data)[: len(data) // 2])
            await self.aclose()
            raise trio.BrokenResourceError("cut by the test")
        await self._inner.send_all(data)

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if await self._count():
            await self.aclose()
            raise trio.BrokenResourceError("cut by the test")
        return await self._inner.receive_some(max_bytes)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await trio.aclose_forcefully(self._inner)


def rows(batch: int) -> list[Any]:
    payloads = [b"%d/%d" % (batch, n) for n in range(ROWS)]
    topics = [f"t/{n % 3}" for n in range(ROWS)]
    whole = pa.RecordBatch.from_pydict({"topic": topics, "payload": payloads})
    return [whole.slice(at, A_BATCH) for at in range(0, ROWS, A_BATCH)]


def publish(broker: Broker, batch: int, calls: int = 0, **options: str) -> int:
    """One attempt. calls: the connection breaks at so many; 0: it does not"""
    target = parse_sink_options(
        {"broker": f"mqtt://{broker.address.host}:{broker.address.port}", "once": "true", **options}
    )

    async def cut(target: SinkOptions) -> trio.abc.Stream:
        return CutStream(await open_to(target), calls)

    return publish_all(rows(batch), target, SinkPartition("q", batch, 0), partial(cut, target) if calls else None)


async def subscribe(broker: Broker) -> None:
    async with connect(*broker.address, client_id="reader", clean_start=False, session_expiry=600) as client:
        await client.subscribe("t/#", qos=2)


async def received(broker: Broker, count: int) -> list[tuple[str, bytes]]:
    """What came for the reader up to a last message, of which there are `count` at least."""
    found: list[tuple[str, bytes]] = []
    reader: Client
    async with connect(*broker.address, client_id="reader", clean_start=False) as reader:
        await reader.publish("t/end", b"end", qos=2)
        with trio.fail_after(60):
            while not (len(found) >= count and any(topic == "t/end" for topic, _ in found)):
                found += [(message.topic, message.payload) for message in await reader.receive_batch()]
    return [each for each in found if each[0] != "t/end"]


def assert_each_row_once(broker: Broker, batches: int) -> None:
    found = trio.run(received, broker, batches * ROWS)
    for n in range(3):
        of_topic = [payload for topic, payload in found if topic == f"t/{n}"]
        assert of_topic == [b"%d/%d" % (batch, row) for batch in range(batches) for row in range(n, ROWS, 3)]


@pytest.mark.parametrize("falls", [False, True], ids=["cut", "cut and broker down"])
def test_each_row_once_wherever_a_connection_breaks(broker: Broker, falls: bool) -> None:
    trio.run(subscribe, broker)
    calls = [4, 8, 13, 21] if falls else range(1, 45, 2)
    for batch, count in enumerate(calls):
        try:
            publish(broker, batch, count)
        except ClientError:
            if falls:
                broker.fall()
            with_two = publish_twice(broker, batch, count + 3)
            assert with_two == ROWS
    assert_each_row_once(broker, len(calls))


def publish_twice(broker: Broker, batch: int, calls: int) -> int:
    """An attempt that may break too, and one that does not."""
    try:
        publish(broker, batch, calls)
    except ClientError:
        pass
    return publish(broker, batch)


class LateStream(CutStream):
    """Stops at its n-th call until another attempt is through, and goes on then."""

    def __init__(self, inner: trio.abc.Stream, calls: int, other: Callable[[], None]) -> None:
        super().__init__(inner, calls)
        self._other = other

    async def _count(self) -> bool:
        self._calls -= 1
        if self._calls == 0:
            await trio.to_thread.run_sync(self._other)
        return False


@dataclass
class OtherAttempt:
    """The attempt that comes between. fault: kept, so that nobody takes it for the late attempt's."""

    publish: Callable[[], int]
    rows: int = -1
    fault: Exception | None = None

    def run(self) -> None:
        try:
            self.rows = self.publish()
        except Exception as fault:
            self.fault = fault

    def assert_published(self) -> None:
        """raises: what the attempt raised"""
        if self.fault is not None:
            raise self.fault
        assert self.rows == ROWS


def test_an_attempt_that_comes_late_changes_nothing(broker: Broker) -> None:
    """It was taken for dead, and its connection was there: the next attempt ends it."""
    trio.run(subscribe, broker)
    calls = (1, 5, 9, 14, 20)
    for batch, count in enumerate(calls):
        target = parse_sink_options({"broker": f"mqtt://{broker.address.host}:{broker.address.port}", "once": "true"})
        other = OtherAttempt(partial(publish, broker, batch))

        async def late(
            target: SinkOptions = target, count: int = count, other: OtherAttempt = other
        ) -> trio.abc.Stream:
            return LateStream(await open_to(target), count, other.run)

        place = SinkPartition("q", batch, 0)
        ended = nullcontext() if count == 1 else pytest.raises(ClientError)
        with ended:
            # One that has not even said CONNECT finds that all is done.
            assert publish_all(rows(batch), target, place, late) == ROWS
        other.assert_published()
    assert_each_row_once(broker, len(calls))
