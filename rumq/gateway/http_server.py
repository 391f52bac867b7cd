"""HTTP connections of one port: bounded in number, and requests under way too; who holds most gives way first.

Health requests have slots of their own, and clients of MQTT over WebSocket too (`rumq.gateway.relay`): nothing that
others do keeps a probe waiting. docs/reference/gateway.md, "Limits"."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Sequence
from functools import partial
from typing import Any

import trio

from rumq.auth.quota_holder import holder_of
from rumq.gateway.http.http_connection import GONE, App, HttpConnection, HttpPeer
from rumq.gateway.http.misuse_reports import MisuseReports
from rumq.gateway.http.network_shares import NetworkShares
from rumq.gateway.http.new_connections import AcceptedConnection, NewConnections
from rumq.gateway.relay.relays import Relays
from rumq.settings.table.gateway import Gateway

HANDSHAKE_SECONDS_MAX = 10.0
ACCEPTED_MAX = 64  # in a turn of the loop
NO_ROOM, NO_ROOM_SECONDS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM), 0.05
HEALTH_PATHS = ("/healthz", "/readyz", "/startupz")
HEALTH_MAX = 64  # health requests under way; a network half of them
# A client of MQTT may say nothing for hours: the kernel asks whether it is still there.
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)  # fmt: skip


class Served:
    """A connection. network: who holds it; is_busy: a request is under way"""

    def __init__(self, network: str) -> None:
        self.network = network
        self.scope = trio.CancelScope()
        self.is_busy = False


class HttpServer:
    """Serves an application on any number of connections."""

    def __init__(
        self, app: App, settings: Gateway, context: ssl.SSLContext | None, relays: Relays, reports: MisuseReports, *,
        room: int,
    ) -> None:  # fmt: skip
        """context: None without TLS; room: connections that descriptors permit, without those of health requests"""
        self._app, self._settings, self._tls = app, settings, context
        self._relays, self._reports = relays, reports
        count = max(1, min(settings.connections_max, room))
        busy = max(1, count // 2)
        self._connections: NetworkShares[Served] = NetworkShares(count, count, self._end, is_busy)
        self._busy: NetworkShares[Served] = NetworkShares(busy, max(1, busy // 2), self._end)
        self._health: NetworkShares[Served] = NetworkShares(HEALTH_MAX, HEALTH_MAX // 2, self._end)

    def use(self, context: ssl.SSLContext | None) -> None:
        """Renewed certificates, for new connections. An open port goes on with or without TLS as it has begun."""
        if self._tls is not None and context is not None:
            self._tls = context

    @property
    def count(self) -> int:
        """Connections, without clients of MQTT."""
        return len(self._connections) + len(self._health)

    @property
    def shed(self) -> int:
        """How many were closed to make room, so far."""
        return self._connections.shed + self._busy.shed + self._health.shed + self._relays.shed

    async def serve(self, listening: Sequence[socket.socket]) -> None:
        """Serve until cancelled. listening: do not block"""
        async with trio.open_nursery() as connections:

            def begin(arrival: AcceptedConnection) -> None:
                stream = trio.SocketStream(trio.socket.from_stdlib_socket(arrival.sock))
                self.begin(stream, arrival.peer, connections)

            new = NewConnections(self._settings.connections_per_second_max, begin, self._reports.event)
            connections.start_soon(new.run)
            for sock in listening:
                connections.start_soon(self._accept, sock, new)

    async def _accept(self, listening: socket.socket, new: NewConnections) -> None:
        """Many in a turn of the loop: trio's listeners accept one, however long the turns of those at work are."""
        while True:
            await trio.lowlevel.wait_readable(listening)
            for _ in range(ACCEPTED_MAX):
                try:
                    accepted, address = listening.accept()
                except OSError as fault:
                    if fault.errno in NO_ROOM:
                        self._connections.shed_one()
                        await trio.sleep(NO_ROOM_SECONDS)
                    break  # no more, or one that has left already
                new.came(AcceptedConnection(accepted, HttpPeer(*address[:2])))

    def begin(self, below: Any, peer: HttpPeer, connections: trio.Nursery) -> None:
        """Serve a connection. It is counted at once: tasks that begin in one turn run in any order, and whoever came
        last would have to go for those that came before. below: its stream, without TLS"""
        served = Served(holder_of(peer.host))
        self._connections.add(served, served.network)
        connections.start_soon(self._serve_one, below, peer, served)

    async def _serve_one(self, below: Any, peer: HttpPeer, served: Served) -> None:
        try:
            with served.scope:
                await self._serve(below, peer, served)
        except* GONE:
            pass  # the client's; faults of TLS are OSErrors
        except* Exception:
            self._reports.failed()
        finally:
            for shares in (self._connections, self._busy, self._health):
                shares.discard(served)
            await trio.aclose_forcefully(below)

    async def _serve(self, below: Any, peer: HttpPeer, served: Served) -> None:
        stream = below
        if self._tls is not None:
            stream = trio.SSLStream(below, self._tls, server_side=True, https_compatible=True)
            with trio.move_on_after(HANDSHAKE_SECONDS_MAX) as too_slow:
                await stream.do_handshake()
            if too_slow.cancelled_caught:
                return
        connection = HttpConnection(
            stream, self._app, peer, "http" if self._tls is None else "https",
            idle_seconds_max=self._settings.idle_seconds_max, answer_seconds_max=self._settings.request_seconds_max,
            on_request=partial(self._begin, served), on_idle=partial(self._become_idle, served),
        )  # fmt: skip
        taken = await connection.serve()
        if taken:
            self._connections.discard(served)  # counted by the relay from here on
            if isinstance(below, trio.SocketStream):
                for level, option, value in KEEPALIVE:
                    below.setsockopt(level, option, value)
            await self._relays.serve(
                BoundedStream(stream, self._settings.request_seconds_max), taken, peer.host, peer.port
            )

    def _begin(self, served: Served, path: str) -> None:
        served.is_busy = True
        if path in HEALTH_PATHS:
            self._connections.discard(served)
            self._health.add(served, served.network)
        else:
            self._busy.add(served, served.network)

    def _become_idle(self, served: Served, is_kept: bool) -> None:
        served.is_busy = False
        self._busy.discard(served)
        self._health.discard(served)
        if not served.scope.cancel_called:
            self._connections.add(served, served.network, goes_first=not is_kept)

    def _end(self, served: Served) -> None:
        """Close one to make room."""
        for shares in (self._connections, self._busy, self._health):
            shares.discard(served)
        served.scope.cancel()
        self._reports.shed(self._connections.count_max, self.shed)


class BoundedStream:
    """A stream to a client of MQTT, which has a bounded time to read each piece."""

    def __init__(self, stream: Any, seconds_max: float) -> None:
        self._stream, self._seconds_max = stream, seconds_max

    async def send_all(self, data: bytes) -> None:
        """raises: OSError, trio.BrokenResourceError"""
        with trio.move_on_after(self._seconds_max) as scope:
            await self._stream.send_all(data)
        if scope.cancelled_caught:
            raise trio.BrokenResourceError("the client does not read")

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return bytes(await self._stream.receive_some(max_bytes))


def is_busy(served: Served) -> bool:
    return served.is_busy
