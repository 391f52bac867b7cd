"""Misuse of the gateway's port by those without a token: meanwhile probes and right tokens are answered at once.

Over memory and a fake clock; on sockets in tests/attacks/test_gateway_port.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from rumq.admin import answers as a
from rumq.errors import RumqError
from rumq.gateway.access.admission import OF_A_NETWORK_MAX, RequestAdmission
from rumq.gateway.access.host_names import HostNames
from rumq.gateway.access.tokens import Token, hash_of
from rumq.gateway.app import App
from rumq.gateway.handlers.context import (
    BrokerAccess,
    Context,
    GatewayClock,
    GatewayFigures,
    GatewayRights,
    LogAccess,
)
from rumq.gateway.http.http_connection import HttpPeer
from rumq.gateway.http.misuse_reports import MisuseReports
from rumq.gateway.http_server import HEALTH_MAX, HttpServer
from rumq.gateway.relay.relays import WAITING_MAX, RelayLimits, Relays
from rumq.settings.table.gateway import Gateway

CONNECTIONS_MAX = 100
SECONDS_MAX = 1.0
ATTACKERS = [f"127.0.0.{n}" for n in range(2, 7)] + ["2001:db8::1", "2001:db8::2"]
TOKEN = "rumq_right"
HEAD = b"GET /api/v1/me HTTP/1.1\r\nhost: localhost\r\n"
WINDOW_OF_0 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\6\4\0\0\0\0\0\0\4\0\0\0\0"
UPGRADE = b"GET /mqtt HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
WEBSOCKET = UPGRADE + (
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: mqtt\r\n\r\n"
)
WRONG = HEAD + b"authorization: Bearer rumq_wrong\r\n\r\n"


class Shards:
    """Of a broker that is ready. is_silent: it never answers"""

    is_silent = False

    async def ask_here(self, operation: Any, request: Any) -> a.Shards:
        if self.is_silent:
            await trio.sleep_forever()
        return a.Shards(shards=[])

    async def maybe_cluster(self) -> None:
        return None


class Deaf:
    """A client that sends what it is given, and reads nothing."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def receive_some(self, bytes_max: int | None = None) -> bytes:
        data, self._data = self._data, b""
        return data or await trio.sleep_forever()  # type: ignore[func-returns-value]

    async def send_all(self, data: bytes) -> None:
        await trio.sleep_forever()

    async def send_eof(self) -> None: ...

    async def aclose(self) -> None: ...


class Place:
    """A gateway without a broker. events: what it has reported"""

    def __init__(self, **settings: Any) -> None:
        self.events: list[str] = []
        self.shards = Shards()
        self.admission = RequestAdmission({hash_of(TOKEN): Token("t", frozenset({"read"}))}, 8.0)

        def told(name: str, **fields: Any) -> None:
            self.events.append(name)

        self.settings = Gateway(**{"connections_max": CONNECTIONS_MAX, **settings})
        hosts = HostNames(self.settings, is_loopback=True)
        self.relays = Relays("", RelayLimits(9, 1 << 17, 1 << 20), self.admission, hosts, told, trio.current_time)
        nothing: Any = None
        shards: Any = self.shards
        clock = GatewayClock(trio.current_time, lambda: 0)
        context = Context(
            self.settings, GatewayRights(self.admission, hosts, None, [], nothing, clock, []),
            BrokerAccess(shards, nothing, self.relays, nothing), LogAccess(nothing, nothing),
            GatewayFigures(nothing, nothing), clock, told,
        )  # fmt: skip
        self.server = HttpServer(
            App(context).build(), self.settings, None, self.relays, MisuseReports(told), room=10_000
        )
        self.nursery: trio.Nursery

    def serve(self, stream: Any, host: str) -> None:
        self.server.begin(stream, HttpPeer(host, 4711), self.nursery)

    def connect(self, host: str) -> Any:
        here, there = memory_stream_pair()
        self.serve(there, host)
        return here

    async def seconds(self, request: bytes, host: str = "127.0.0.1") -> float:
        """Until the answer, which is 200."""
        began = trio.current_time()
        stream = self.connect(host)
        await stream.send_all(request)
        got = bytes(await stream.receive_some())
        assert got.startswith(b"HTTP/1.1 200"), got
        await stream.aclose()
        return trio.current_time() - began

    async def check(self) -> None:
        for host in ("127.0.0.1", ATTACKERS[0]):
            for path in (b"/healthz", b"/readyz"):
                request = b"GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n" % path
                assert await self.seconds(request, host) <= SECONDS_MAX
        right = HEAD + b"authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
        assert await self.seconds(right) <= SECONDS_MAX
        assert await self.seconds(right, "10.0.0.9") <= SECONDS_MAX
        assert self.server.count <= CONNECTIONS_MAX + HEALTH_MAX and self.relays.waiting <= WAITING_MAX


@asynccontextmanager
async def running(**settings: Any) -> AsyncIterator[Place]:
    place = Place(**settings)
    async with trio.open_nursery() as place.nursery:
        yield place
        place.nursery.cancel_scope.cancel()


async def idle(place: Place, host: str) -> None:
    place.connect(host)


async def window_of_0(place: Place, host: str) -> None:
    await place.connect(host).send_all(WINDOW_OF_0)
    await place.connect(host).send_all(
        HEAD + b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAQAAAAA\r\n\r\n"
    )


async def unread(place: Place, host: str) -> None:
    place.serve(Deaf(b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 9), host)


async def unread_health(place: Place, host: str) -> None:
    place.serve(Deaf(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n"), host)


async def dripping(place: Place, host: str) -> None:
    stream = place.connect(host)
    try:
        for byte in HEAD * 9:
            await stream.send_all(bytes([byte]))
            await trio.sleep(1.0)
    except trio.BrokenResourceError:
        pass


async def endless_body(place: Place, host: str) -> None:
    stream = place.connect(host)
    try:
        await stream.send_all(b"POST /api/v1/publish HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            await stream.send_all(b"400\r\n" + b" " * 1024 + b"\r\n")
            await trio.sleep(0.5)
    except trio.BrokenResourceError:
        pass


async def wrong_tokens(place: Place, host: str) -> None:
    stream = place.connect(host)
    try:
        for _ in range(20):
            await stream.send_all(WRONG)
            if not await stream.receive_some():
                return
    except trio.BrokenResourceError:
        pass


async def no_connect(place: Place, host: str) -> None:
    await place.connect(host).send_all(WEBSOCKET)


MISUSES = [idle, window_of_0, unread, unread_health, dripping, endless_body, wrong_tokens, no_connect]
ANSWERED_AT_ONCE = (endless_body,)  # refused before it holds anything


def test_of_those_that_come_in_one_turn_the_last_one_stays() -> None:
    async def body() -> None:
        async with running() as place:
            for number in range(20):  # trio runs what begins in one turn forwards or backwards, by chance
                streams = [place.connect(f"10.0.1.{number}") for _ in range(3 * CONNECTIONS_MAX)]
                await streams[-1].send_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert bytes(await streams[-1].receive_some()).startswith(b"HTTP/1.1 200")

    trio.run(body, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize("misuse", MISUSES, ids=lambda each: each.__name__)
def test_meanwhile_probes_and_right_tokens_are_answered(
    misuse: Callable[[Place, str], Awaitable[None]],
) -> None:
    async def body() -> None:
        async with running() as place:
            for _ in range(40):
                for host in ATTACKERS:
                    for _ in range(2):
                        place.nursery.start_soon(misuse, place, host)
                await trio.sleep(0.5)
                await place.check()
            assert "gateway.failed" not in place.events
            assert ("gateway.overloaded" in place.events) == (misuse not in ANSWERED_AT_ONCE)

    trio.run(body, clock=MockClock(autojump_threshold=0))


def test_a_silent_shard_makes_nobody_wait_who_asks_whether_it_is_ready() -> None:
    async def body() -> None:
        async with running() as place:
            place.shards.is_silent = True
            answers: list[bytes] = []

            async def probe() -> None:
                began = trio.current_time()
                stream = place.connect("127.0.0.1")
                await stream.send_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                answers.append(bytes(await stream.receive_some()))
                assert trio.current_time() - began <= SECONDS_MAX

            async with trio.open_nursery() as probes:
                for _ in range(10):
                    probes.start_soon(probe)
                    await trio.sleep(0.3)
            assert all(b"HTTP/1.1 503" in each and b"not answered" in each for each in answers)
            place.shards.is_silent = False
            await trio.sleep(1.0)
            await place.check()

    trio.run(body, clock=MockClock(autojump_threshold=0))


def test_who_asks_too_much_at_once_loses_his_own_oldest() -> None:
    """A network has a quarter of the connections for requests under way; others have theirs."""

    async def body() -> None:
        async with running() as place:
            theirs = [place.connect("10.0.0.1") for _ in range(3)]
            for stream in theirs:
                await stream.send_all(WRONG)
            streams = [place.connect("10.0.0.2") for _ in range(CONNECTIONS_MAX // 4 + 1)]
            for stream in streams:
                await stream.send_all(WRONG)
                await trio.testing.wait_all_tasks_blocked()
            assert await streams[0].receive_some() == b"", "closed for the newest"
            await trio.sleep(9.0)
            for stream in theirs + streams[1:]:
                assert bytes(await stream.receive_some()).startswith(b"HTTP/1.1 401")

    trio.run(body, clock=MockClock(autojump_threshold=0))


def test_a_connection_at_work_outlives_idle_ones() -> None:
    async def body() -> None:
        async with running(connections_max=8) as place:
            worker = place.connect("10.0.0.1")
            await worker.send_all(WRONG)
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(20):
                place.connect("10.0.0.1")
                await trio.testing.wait_all_tasks_blocked()
            assert bytes(await worker.receive_some()).startswith(b"HTTP/1.1 401")
            assert place.server.count == 8 and place.server.shed == 13

    trio.run(body, clock=MockClock(autojump_threshold=0))


def test_an_application_that_fails_ends_one_connection_and_is_told() -> None:
    async def body() -> None:
        async with running() as place:

            async def fails(scope: Any, receive: Any, send: Any) -> None:
                raise RumqError("a bug")

            app, place.server._app = place.server._app, fails
            stream = place.connect("10.0.0.1")
            await stream.send_all(HEAD + b"\r\n")
            assert await stream.receive_some() == b""
            assert place.events == ["gateway.failed"]
            place.server._app = app
            await place.check()
            assert OF_A_NETWORK_MAX < WAITING_MAX

    trio.run(body, clock=MockClock(autojump_threshold=0))
