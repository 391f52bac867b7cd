"""The WebSocket handshake: answer an HTTP request, or refuse it in words. RFC 6455, 4.2; MQTT 5.0, 6."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

import msgspec
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Request
from wsproto.utilities import RemoteProtocolError

SUBPROTOCOLS = ("mqtt", "mqttv3.1")
HEADER_BYTES_MAX = 8192
STATUS = {
    400: "Bad Request", 403: "Forbidden", 404: "Not Found", 426: "Upgrade Required",
    431: "Request Header Fields Too Large",
}  # fmt: skip


class WebSocketOptions(msgspec.Struct, frozen=True, kw_only=True):
    """path: where MQTT is, "" for anywhere; origins: which pages' scripts may come, as "https://plant.example.org",
    "*" for any (a client that is no browser names no origin); frame_bytes_max: of one frame from a client
    names_are_proved: by TLS: the browser has checked that this is the host it asked for"""

    path: str = "/mqtt"
    origins: tuple[str, ...] = ()
    names_are_proved: bool = False
    header_bytes_max: int = HEADER_BYTES_MAX
    frame_bytes_max: int = 1 << 28


class HandshakeAnswer(NamedTuple):
    """why: empty if the WebSocket is open"""

    data: bytes
    why: str


def answer(head: bytes, options: WebSocketOptions) -> HandshakeAnswer:
    """Answer a request. head: up to the empty line, that included"""
    path = maybe_path(head)
    if options.path and path is not None and path != options.path:
        return refusal(404, f"nothing is here, MQTT is at {options.path}", f"an HTTP request for {path[:100]}")
    wire = WSConnection(ConnectionType.SERVER)
    try:
        wire.receive_data(head)
        request = next(wire.events(), None)
    except RemoteProtocolError as fault:
        return explain_refusal(head, str(fault))
    except UnicodeError:  # wsproto takes some headers for ASCII, and the host for a name of the DNS
        return explain_refusal(head, "a header with characters that do not belong there")
    if not isinstance(request, Request):
        return refusal(400, "this is no HTTP request that could be understood", "an HTTP request with a fault in it")
    origin = next((value.decode("latin-1") for name, value in request.extra_headers if name == b"origin"), None)
    if origin is not None and not is_origin_allowed(origin.lower(), request.host.lower(), options):
        return refusal(
            403,
            f"pages from {origin[:100]} may not connect here; websocket_origins of the listener lists those that may",
            f"a page from {origin[:100]}, which is not in websocket_origins",
        )
    chosen = next((name for name in SUBPROTOCOLS if name in request.subprotocols), None)
    if chosen is None:
        return refusal(
            400,
            "offer the subprotocol mqtt (Sec-WebSocket-Protocol)",
            "a WebSocket without the subprotocol mqtt",
        )
    return HandshakeAnswer(wire.send(AcceptConnection(subprotocol=chosen)), "")


def is_origin_allowed(origin: str, host: str, options: WebSocketOptions) -> bool:
    """Whether a page may connect: one that is listed, or that came from this very address. RFC 6455, 10.2

    A host's name proves nothing without TLS: whoever owns a name can have it lead to this address once the page is
    there (DNS rebinding), so that a page counts as from here only at an address, or at "localhost"."""
    listed = [each.lower() for each in options.origins]
    if "*" in listed or origin in listed:
        return True
    if listed:
        return False
    return origin in (f"http://{host}", f"https://{host}") and (options.names_are_proved or is_address(host))


def is_address(host: str) -> bool:
    """Whether the host of a request, with or without a port, is an IP address or this machine."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def maybe_path(head: bytes) -> str | None:
    """The path that is asked for; None in what is no request."""
    parts = head.split(b"\r\n", 1)[0].split(b" ")
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/"):
        return None
    return parts[1].decode("latin-1").partition("?")[0]


def explain_refusal(head: bytes, fault: str) -> HandshakeAnswer:
    """Answer a request that asks for no WebSocket, or not in the right way."""
    if maybe_path(head) is None:
        return refusal(400, "this is no HTTP request that could be understood", "bytes that are no HTTP request")
    lower = head.lower()
    if b"\r\nupgrade:" not in lower:
        return refusal(426, "here is MQTT over WebSocket, and nothing to look at", "an HTTP request that is no upgrade")
    if "Version" in fault:
        return refusal(426, "WebSocket version 13 is spoken here", "another version of WebSocket than 13")
    return refusal(400, f"no WebSocket: {fault}", f"a WebSocket request with a fault: {fault}"[:200])


def refusal(status: int, text: str, why: str) -> HandshakeAnswer:
    body = f"{text[0].upper()}{text[1:]}.\n".encode("latin-1", "replace")
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" if status == 426 else ""
    connection = "Upgrade, close" if status == 426 else "close"
    head = (
        f"HTTP/1.1 {status} {STATUS[status]}\r\n{upgrade}Connection: {connection}\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return HandshakeAnswer(head.encode() + body, why)
