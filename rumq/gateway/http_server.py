"""HTTP connections: bounded in number, the one idle for longest closed for a new one, and slow readers given up.

Each is served by hypercorn; what is added here is around its stream, from which MQTT over WebSocket is taken."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from rumq.config.gateway import Gateway
from rumq.gateway.misuse_reports import MisuseReports
from rumq.gateway.relay.relays import Relays
from rumq.gateway.upgrade_stream import HEAD_BYTES_MAX, UpgradeStream

HANDSHAKE_SECONDS_MAX = 10.0
# A client of MQTT may say nothing for hours: the kernel asks whether it is still there.
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)  # fmt: skip


class BoundedStream(trio.abc.HalfCloseableStream):
    """A socket to a client that has a bounded time to read each piece."""

    def __init__(self, stream: trio.SocketStream, seconds_max: float) -> None:
        self._stream, self._seconds_max = stream, seconds_max
        self.socket = stream.socket  # hypercorn asks it for addresses

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        try:
            with trio.fail_after(self._seconds_max):
                await self._stream.send_all(data)
        except trio.TooSlowError:
            raise trio.BrokenResourceError("the client does not read") from None

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


class Served:
    """A connection. busy: requests under way; idle_since: monotonic seconds"""

    def __init__(self, now: float) -> None:
        self.scope = trio.CancelScope()
        self.stream: UpgradeStream | None = None
        self.busy = 0
        self.idle_since = now


class HttpServer:
    """count: of connections; shed: closed to make room, so far"""

    def __init__(
        self,
        app: Any,
        settings: Gateway,
        now: Callable[[], float],
        context: ssl.SSLContext | None,
        relays: Relays,
        reports: MisuseReports,
    ) -> None:
        """context: None without TLS"""
        self._reports = reports
        self._relays = relays
        self._settings, self._now, self._tls = settings, now, context
        self._app = ASGIWrapper(self._marked(app))
        self._config = config_of(settings)
        self._served: dict[tuple[str, int], Served] = {}
        self.shed = 0

    @property
    def count(self) -> int:
        return len(self._served)

    async def serve(self, listeners: Sequence[trio.SocketListener]) -> None:
        """Serve until cancelled."""
        context = WorkerContext(None)
        async with trio.open_nursery() as connections:
            serve = partial(self._one, context)
            await trio.serve_listeners(serve, list(listeners), handler_nursery=connections)

    async def _one(self, context: WorkerContext, accepted: trio.SocketStream) -> None:
        try:
            key = accepted.socket.getpeername()[:2]
        except OSError:  # it has left
            await trio.aclose_forcefully(accepted)
            return
        if len(self._served) >= self._settings.connections_max and not self._shed_one():
            await trio.aclose_forcefully(accepted)
            self._count_shed()
            return
        served = self._served[key] = Served(self._now())
        stream: Any = BoundedStream(accepted, self._settings.request_seconds_max)
        if self._tls is not None:
            stream = trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
        try:
            with served.scope:
                with trio.CancelScope() as until_taken:
                    watched: Any = UpgradeStream(stream, until_taken)
                    served.stream = watched
                    await TCPServer(self._app, self._config, context, ConnectionState({}), watched)
                if watched.taken:
                    served.busy += 1
                    for level, option, value in KEEPALIVE:
                        accepted.socket.setsockopt(level, option, value)
                    await self._relays.serve(stream, watched.taken, *key)
        except* (OSError, ssl.SSLError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client's
        finally:
            if self._served.get(key) is served:
                del self._served[key]
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1.0):
                await trio.aclose_forcefully(accepted)

    def _shed_one(self) -> bool:
        """Close the connection that is idle for longest; False if none is idle."""
        idle = [(served.idle_since, key) for key, served in self._served.items() if not served.busy]
        if not idle:
            return False
        _, key = min(idle)
        self._served.pop(key).scope.cancel()
        self._count_shed()
        return True

    def _count_shed(self) -> None:
        self.shed += 1
        self._reports.shed(self._settings.connections_max, self.shed)

    def _marked(self, app: Any) -> Any:
        """The application, with connections marked while a request is under way."""

        async def marked(scope: Any, receive: Any, send: Any) -> None:
            served = self._served.get(tuple(scope.get("client") or ())[:2])
            stream = served.stream if served is not None else None
            if served is None or stream is None:
                await app(scope, receive, send)
                return

            async def sent(message: Any) -> None:
                # Before the last piece: the client's next request may be here before this one has returned.
                if message["type"] == "http.response.body" and not message.get("more_body", False):
                    stream.at_request = not has_body(scope)
                await send(message)

            served.busy += 1
            try:
                await app(scope, receive, sent)
            finally:
                served.busy -= 1
                served.idle_since = self._now()

        return marked


def has_body(scope: Any) -> bool:
    """Whether bytes of a request's body may still come: they are no request."""
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope.get("headers", ()))


def config_of(settings: Gateway) -> Config:
    config = Config()
    config.errorlog = config.accesslog = None
    config.include_server_header = False
    config.keep_alive_timeout = settings.idle_seconds_max
    config.keep_alive_max_requests = 1_000_000
    config.ssl_handshake_timeout = HANDSHAKE_SECONDS_MAX
    config.h11_max_incomplete_size = HEAD_BYTES_MAX
    config.alpn_protocols = ["http/1.1"]
    return config
