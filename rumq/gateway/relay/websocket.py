"""The server's side of a WebSocket that carries MQTT: handshake, and bytes of binary frames. RFC 6455; MQTT 5.0, 6.

No extensions, so nothing is decompressed, and no message is gathered: only what was read last is kept."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlsplit

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from rumq.gateway.access.host_names import HostNames

USUAL_PORTS = (None, 80, 443)
SUBPROTOCOLS = ("mqtt", "mqttv3.1")
READ_BYTES = 1 << 16
NORMAL, UNSUPPORTED, POLICY = 1000, 1003, 1008
REASON_BYTES_MAX = 120  # of a close frame. RFC 6455, 5.5
STATUS = {
    400: "Bad Request", 403: "Forbidden", 421: "Misdirected Request", 426: "Upgrade Required",
    503: "Service Unavailable",
}  # fmt: skip


class WebSocketBroken(Exception):
    """The client broke WebSocket, or has left."""


class UpgradeAnswer(NamedTuple):
    """To a request. data: for the client; wire: None: it was refused"""

    data: bytes
    wire: WSConnection | None = None


def answer(head: bytes, hosts: HostNames) -> UpgradeAnswer:
    """head: of the request, up to the empty line, that included; hosts: that may be asked for"""
    wire = WSConnection(ConnectionType.SERVER)
    try:
        wire.receive_data(head)
        request = next(wire.events(), None)
    except (RemoteProtocolError, UnicodeError):
        return refused(426, "here is MQTT over WebSocket, version 13")
    if not isinstance(request, Request):
        return refused(400, "this is no whole request")
    if why := hosts.refusal(request.host):
        return refused(421, why)
    headers = {name.lower(): value.decode("latin-1") for name, value in request.extra_headers}
    origin = headers.get(b"origin")
    if origin is not None and not is_same_host(origin, request.host):
        return refused(403, "pages of other hosts may not connect here")
    chosen = next((name for name in SUBPROTOCOLS if name in request.subprotocols), None)
    if chosen is None:
        return refused(400, "offer the subprotocol mqtt (Sec-WebSocket-Protocol)")
    return UpgradeAnswer(wire.send(AcceptConnection(subprotocol=chosen)), wire)


def is_same_host(origin: str, host: str) -> bool:
    """Whether a page came from the host that it connects to; schemes are not compared: a proxy may end TLS."""
    try:
        page, here = urlsplit(origin.lower()), urlsplit(f"//{host.lower()}")
        ports = page.port, here.port
    except ValueError:
        return False
    if not page.hostname or page.hostname != here.hostname:
        return False
    return ports[0] == ports[1] or all(port in USUAL_PORTS for port in ports)


def refused(status: int, text: str) -> UpgradeAnswer:
    body = f"{text[0].upper()}{text[1:]}.\n".encode()
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" if status == 426 else ""
    head = (
        f"HTTP/1.1 {status} {STATUS[status]}\r\n{upgrade}Connection: close\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return UpgradeAnswer(head.encode() + body)


class WebSocket:
    """below: has a time limit of its own for each piece that the client must read"""

    def __init__(self, below: Any, wire: WSConnection) -> None:
        self._below, self._wire = below, wire
        self._sending = trio.Lock()  # the reader sends PONG
        self._ended = False

    async def receive(self) -> bytes:
        """Bytes of the client, of any length; empty at the end. raises: WebSocketBroken"""
        while True:
            found = bytearray()
            try:
                for event in self._wire.events():
                    if isinstance(event, BytesMessage):
                        found += event.data
                    elif isinstance(event, Ping):
                        await self._send(event.response())
                    elif isinstance(event, TextMessage):
                        await self.close(UNSUPPORTED, "MQTT is binary")
                        raise WebSocketBroken("it sent text, and MQTT is binary")
                    elif isinstance(event, CloseConnection):
                        self._ended = True
                        if self._wire.state is ConnectionState.REMOTE_CLOSING:
                            await self._send(event.response())
            except RemoteProtocolError as fault:
                raise WebSocketBroken(str(fault)) from None
            if found or self._ended:
                return bytes(found)
            try:
                data = await self._below.receive_some(READ_BYTES)
            except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as fault:
                raise WebSocketBroken(str(fault)) from None
            if not data:
                self._ended = True
                return b""
            self._wire.receive_data(bytes(data))

    async def send(self, data: bytes) -> None:
        """raises: WebSocketBroken, also for a client that does not read"""
        await self._send(BytesMessage(data=data))

    async def close(self, code: int, why: str = "") -> None:
        """Say so, if the other side still listens."""
        if self._wire.state is not ConnectionState.OPEN:
            return
        reason = why.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
        try:
            await self._send(CloseConnection(code=code, reason=reason))
        except WebSocketBroken:
            pass

    async def _send(self, event: Event) -> None:
        async with self._sending:
            try:
                await self._below.send_all(self._wire.send(event))
            except (LocalProtocolError, OSError, trio.BrokenResourceError, trio.ClosedResourceError) as fault:
                raise WebSocketBroken(str(fault)) from None
