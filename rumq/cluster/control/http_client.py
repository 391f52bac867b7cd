"""A small HTTP/1.1 client on trio, by h11: a request at a time on a connection, which is kept. RFC 9112.

It follows no redirect, uses no proxy, cookie or compression, and sends nothing twice. What an answer means is for the
caller to say."""

from __future__ import annotations

import select
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import h11
import trio

CONNECT_SECONDS = 0.5  # with the handshake of TLS
KEPT_SECONDS, KEPT_MAX = 60.0, 8  # an idle connection is kept so long, and so many of them
READ_BYTES = 1 << 16
ANSWER_BYTES_MAX = 16 << 20
CLOSE_SECONDS_MAX = 0.2


class InvalidUrl(Exception):
    """Neither http:// nor https://, or without a host."""


class NotConnected(Exception):
    """No connection could be made, so nothing was sent."""


class ResponseLost(Exception):
    """The request was sent, or a part of it; no whole answer came."""


class Origin(NamedTuple):
    """Where a request goes to."""

    scheme: str
    host: str
    port: int


class HttpResponse(NamedTuple):
    status: int
    body: bytes


class HttpClient:
    """tls: for https://; None: with the system's authorities"""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._kept: list[tuple[Origin, HttpClientConnection, float]] = []

    async def request(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> HttpResponse:
        """POST `body`, or GET without one. Cancelled, the connection is closed.

        raises: InvalidUrl, NotConnected, ResponseLost"""
        origin, target = parse_url(url)
        connection = await self._connected(origin)
        is_kept = False
        try:
            status = await connection.send(origin, target, body, headers)
            parts, size = [], 0
            async for part in connection.parts():
                size += len(part)
                if size > ANSWER_BYTES_MAX:
                    raise ResponseLost(f"an answer of more than {ANSWER_BYTES_MAX >> 20} MiB")
                parts.append(part)
            is_kept = connection.is_reusable()
        finally:
            if is_kept:
                self._keep(origin, connection)
            else:
                await connection.close()
        return HttpResponse(status, b"".join(parts))

    @asynccontextmanager
    async def stream(
        self, url: str, body: bytes, headers: Mapping[str, str], seconds: float
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """An answer that goes on: its status and its lines, without their ends. Closed at the end of the block.

        seconds: until it begins. raises: as `request`; ResponseLost while it is read, too"""
        origin, target = parse_url(url)
        connection: HttpClientConnection | None = None
        try:
            with trio.move_on_after(seconds) as scope:
                connection = await self._connected(origin)
                status = await connection.send(origin, target, body, headers)
            if connection is None or scope.cancelled_caught:
                raise ResponseLost(f"no answer within {seconds:g} s")
            yield status, connection.lines()
        finally:
            if connection is not None:
                await connection.close()

    async def close(self) -> None:
        """Close what is kept. Requests that run end by being cancelled."""
        while self._kept:
            await self._kept.pop()[1].close()

    async def _connected(self, origin: Origin) -> HttpClientConnection:
        for place in reversed(range(len(self._kept))):
            kept, connection, since = self._kept[place]
            if kept == origin:
                del self._kept[place]
                if trio.current_time() - since < KEPT_SECONDS and connection.is_quiet():
                    return connection
                await connection.close()
        return await connect(origin, self._tls)

    def _keep(self, origin: Origin, connection: HttpClientConnection) -> None:
        self._kept.append((origin, connection, trio.current_time()))
        if len(self._kept) > KEPT_MAX:
            self._kept.pop(0)[1].abandon()


class HttpClientConnection:
    """stream: what is read and written; sock: the socket below it"""

    def __init__(self, stream: trio.abc.Stream, sock: trio.SocketStream) -> None:
        self._stream, self._socket = stream, sock
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=READ_BYTES)

    async def send(self, origin: Origin, target: str, body: bytes | None, headers: Mapping[str, str]) -> int:
        """Send a request and read up to the answer's status. raises: ResponseLost"""
        lines: list[tuple[str, str]] = [("Host", host_line(origin)), *headers.items()]
        if body is not None:
            lines += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        state = self._state
        try:
            data = state.send(h11.Request(method="GET" if body is None else "POST", target=target, headers=lines))
            data += state.send(h11.Data(data=body)) if body else b""
            data += state.send(h11.EndOfMessage())
            await self._stream.send_all(data)
            while True:
                event = await self._next_event()
                if isinstance(event, h11.Response):
                    return int(event.status_code)
                if not isinstance(event, h11.InformationalResponse):
                    raise ResponseLost("the connection was closed before an answer")
        except (h11.ProtocolError, trio.BrokenResourceError) as fault:
            raise ResponseLost(f"{type(fault).__name__} {fault.__cause__ or fault}") from fault

    async def parts(self) -> AsyncIterator[bytes]:
        """The body, as it comes. raises: ResponseLost"""
        try:
            while isinstance(event := await self._next_event(), h11.Data):
                yield bytes(event.data)
        except (h11.ProtocolError, trio.BrokenResourceError) as fault:
            raise ResponseLost(f"{type(fault).__name__} {fault.__cause__ or fault}") from fault

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of the body, the last one whether it has an end or not. raises: ResponseLost"""
        rest = b""
        async for part in self.parts():
            *whole, rest = (rest + part).split(b"\n")
            if len(rest) > ANSWER_BYTES_MAX:
                raise ResponseLost(f"a line of more than {ANSWER_BYTES_MAX >> 20} MiB")
            for line in whole:
                yield line
        if rest:
            yield rest

    async def _next_event(self) -> object:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            self._state.receive_data(bytes(await self._stream.receive_some(READ_BYTES)))
        return event

    def is_reusable(self) -> bool:
        """Whether both sides are done, and let the connection stand; then it is ready for the next request."""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        self._state.start_next_cycle()
        return True

    def is_quiet(self) -> bool:
        """Nothing came while nobody asked: the other end has not hung up."""
        ready = select.poll()
        ready.register(self._socket.socket.fileno(), select.POLLIN)
        return not ready.poll(0)

    def abandon(self) -> None:
        """Close the socket, without a word of TLS."""
        self._socket.socket.close()

    async def close(self) -> None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS_MAX):
            await self._stream.aclose()


async def connect(origin: Origin, tls: ssl.SSLContext | None) -> HttpClientConnection:
    """raises: NotConnected"""
    sock: trio.SocketStream | None = None
    made: HttpClientConnection | None = None
    try:
        with trio.move_on_after(CONNECT_SECONDS):
            sock = await trio.open_tcp_stream(origin.host, origin.port)
            stream: trio.abc.Stream = sock
            if origin.scheme == "https":
                context = ssl.create_default_context() if tls is None else tls
                secure = trio.SSLStream(sock, context, server_hostname=origin.host, https_compatible=True)
                await secure.do_handshake()
                stream = secure
            made = HttpClientConnection(stream, sock)
    except (OSError, trio.BrokenResourceError) as fault:
        raise NotConnected(str(fault.__cause__ or fault) or type(fault).__name__) from fault
    finally:
        if made is None and sock is not None:
            sock.socket.close()
    if made is None:
        raise NotConnected(f"no connection within {CONNECT_SECONDS:g} s")
    return made


def parse_url(url: str) -> tuple[Origin, str]:
    """Where it goes to, and the path. raises: InvalidUrl"""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise InvalidUrl(str(fault)) from fault
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidUrl("expected http://host:port or https://host:port")
    return Origin(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80)), parts.path or "/"


def host_line(origin: Origin) -> str:
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    return f"{host}:{origin.port}"


def tls_context(authority: str, certificate: str, key: str) -> ssl.SSLContext:
    """Paths of PEM files; empty: the system's authorities, no certificate of ours. raises: OSError, ssl.SSLError"""
    context = ssl.create_default_context(cafile=authority or None)
    if certificate:
        context.load_cert_chain(certificate, key or None)
    return context


def needs_tls(urls: Sequence[str]) -> bool:
    return any(url.lower().startswith("https:") for url in urls)
