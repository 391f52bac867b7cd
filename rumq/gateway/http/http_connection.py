"""One HTTP/1.1 connection: requests read from a stream, given to an ASGI application, answered. RFC 9112; ASGI 3.0

Each part has a time limit of its own: the head of a request, and the whole of an answer, however slowly the client
sends or reads; of server-sent events, which do not end, each piece. HTTP/2 is not spoken: there, a client decides when
its answers may be sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from typing import Any, NamedTuple
from urllib.parse import unquote

import h11
import trio

MQTT = (b"GET /mqtt ", b"GET /mqtt?")
WEBSOCKET = b"\r\nupgrade: websocket"
HEAD_BYTES_MAX = 16_384
HEAD_SECONDS_MAX = 10.0  # from its first byte to its end
READ_BYTES = 1 << 16
LINGER_SECONDS_MAX, LINGER_BYTES_MAX = 1.0, 1 << 20  # a client that still sends can read why it is refused
ENDLESS = b"text/event-stream"  # bounded in number: `rumq.gateway.records.log_watch`
VERSIONS = (b"1.0", b"1.1")
GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


class HttpPeer(NamedTuple):
    host: str
    port: int


class HttpConnection:
    """on_request: called with the path of a request before the application is; on_idle: after its answer, with whether
    another request may follow"""

    def __init__(
        self,
        stream: Any,
        app: App,
        peer: HttpPeer,
        scheme: str,
        *,
        idle_seconds_max: float,
        answer_seconds_max: float,
        on_request: Callable[[str], None],
        on_idle: Callable[[bool], None],
    ) -> None:
        self._stream, self._app, self._peer, self._scheme = stream, app, peer, scheme
        self._idle_seconds_max, self._answer_seconds_max = idle_seconds_max, answer_seconds_max
        self._on_request, self._on_idle = on_request, on_idle

    async def serve(self) -> bytes:
        """Until the client leaves, is too slow, or breaks the protocol.

        returns: a request for MQTT over WebSocket and what was read behind it, for the caller; else b"" """
        rest = b""
        try:
            while True:
                wire = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
                try:
                    request, data = await self._request(wire, rest)
                except h11.RemoteProtocolError as fault:
                    await self._refuse(wire, fault.error_status_hint)
                    return b""
                if request is None:
                    return b""
                if data.startswith(MQTT) and WEBSOCKET in data.partition(b"\r\n\r\n")[0].lower():
                    return data
                if request.http_version not in VERSIONS:
                    await self._refuse(wire, 505)
                    return b""
                exchange = HttpExchange(self._stream, wire, request, self._answer_seconds_max)
                scope = self._scope(request)
                self._on_request(scope["path"])
                await self._app(scope, exchange.receive, exchange.send)
                is_over = exchange.is_over()
                self._on_idle(is_over)
                if not is_over:
                    await self._linger()
                    return b""
                rest = wire.trailing_data[0]
        except GONE:
            return b""

    async def _request(self, wire: h11.Connection, data: bytes) -> tuple[h11.Request | None, bytes]:
        """The next request, and all bytes read for it; None at the end. raises: h11.RemoteProtocolError"""
        if not data:
            with trio.move_on_after(self._idle_seconds_max):
                data = bytes(await self._stream.receive_some(READ_BYTES))
            if not data:
                return None, b""
        wire.receive_data(data)
        with trio.move_on_after(HEAD_SECONDS_MAX):
            while (event := wire.next_event()) is h11.NEED_DATA:
                more = bytes(await self._stream.receive_some(READ_BYTES))
                if not more:
                    return None, b""
                data += more
                wire.receive_data(more)
            if isinstance(event, h11.Request):
                return event, data
        return None, b""

    def _scope(self, request: h11.Request) -> Message:
        path, _, query = request.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": request.http_version.decode(),
            "method": request.method.decode("ascii").upper(),
            "scheme": self._scheme,
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": list(request.headers),
            "client": tuple(self._peer),
            "server": None,
        }

    async def _refuse(self, wire: h11.Connection, status: int) -> None:
        headers = [(b"content-length", b"0"), (b"connection", b"close"), (b"date", now_as_text())]
        if wire.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        data = wire.send(h11.Response(status_code=status, headers=headers)) or b""
        with trio.move_on_after(self._answer_seconds_max):
            await self._stream.send_all(data + (wire.send(h11.EndOfMessage()) or b""))
            await self._linger()

    async def _linger(self) -> None:
        """The answer ends here; what the client still sends is read for a moment, or a reset could overtake it."""
        with trio.move_on_after(LINGER_SECONDS_MAX):
            if not hasattr(self._stream, "send_eof"):  # TLS says so by itself
                await self._stream.aclose()
                return
            await self._stream.send_eof()
            read = 0
            while read < LINGER_BYTES_MAX and (data := await self._stream.receive_some(READ_BYTES)):
                read += len(data)


class HttpExchange:
    """A request and its answer: what an ASGI application receives and sends."""

    def __init__(self, stream: Any, wire: h11.Connection, request: h11.Request, answer_seconds_max: float) -> None:
        self._stream, self._wire = stream, wire
        self._is_head = request.method == b"HEAD"
        self._seconds_max = answer_seconds_max
        self._until = 0.0  # when the answer has to be read; 0: it has not begun
        self._is_endless = False  # of server-sent events: then each piece has the time of an answer
        self._head: h11.Response | None = None  # not sent yet: goes with the first piece
        self._behind = 0  # bytes read behind the request

    async def receive(self) -> Message:
        """The next piece of the body; behind it http.disconnect, once the client leaves."""
        wire = self._wire
        try:
            while wire.their_state not in (h11.DONE, h11.MUST_CLOSE):
                event = wire.next_event()
                if event is h11.NEED_DATA:
                    if wire.they_are_waiting_for_100_continue:
                        ready = wire.send(h11.InformationalResponse(status_code=100, headers=[]))
                        await self._write(ready or b"")
                    wire.receive_data(bytes(await self._stream.receive_some(READ_BYTES)))
                elif isinstance(event, h11.Data):
                    return {"type": "http.request", "body": bytes(event.data), "more_body": True}
                elif isinstance(event, h11.EndOfMessage):
                    return {"type": "http.request", "body": b"", "more_body": False}
                else:
                    break
            while self._behind < READ_BYTES:
                data = bytes(await self._stream.receive_some(READ_BYTES))
                if not data:
                    break
                self._behind += len(data)
                wire.receive_data(data)
            else:
                await trio.sleep_forever()
        except (h11.RemoteProtocolError, *GONE):
            pass
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """raises: trio.BrokenResourceError: the client has left, or does not read; h11.LocalProtocolError"""
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (b"date", now_as_text())]
            self._is_endless = any(name == b"content-type" and value.startswith(ENDLESS) for name, value in headers)
            self._head = h11.Response(status_code=message["status"], headers=headers)
            self._has_body = not self._is_head and message["status"] not in (204, 304)
        elif message["type"] == "http.response.body":
            data = b""
            if self._head is not None:
                data = self._wire.send(self._head) or b""
                self._head = None
            if self._has_body and (body := message.get("body", b"")):
                data += self._wire.send(h11.Data(data=bytes(body))) or b""
            if not message.get("more_body", False):
                data += self._wire.send(h11.EndOfMessage()) or b""
            await self._write(data)

    async def _write(self, data: bytes) -> None:
        if self._is_endless or not self._until:
            self._until = trio.current_time() + self._seconds_max
        with trio.CancelScope(deadline=self._until) as scope:
            await self._stream.send_all(data)
        if scope.cancelled_caught:
            raise trio.BrokenResourceError("the client does not read its answer")

    def is_over(self) -> bool:
        """Whether both have ended, so that the next request may follow on this connection."""
        wire = self._wire
        try:
            while isinstance(wire.next_event(), h11.Data):
                pass  # of a body that is here and that nobody wants
        except h11.RemoteProtocolError:
            return False
        return wire.our_state is h11.DONE and wire.their_state is h11.DONE


def now_as_text() -> bytes:
    """For the header Date. RFC 9110, 6.6.1"""
    return formatdate(usegmt=True).encode()
