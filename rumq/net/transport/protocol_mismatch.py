"""A client speaks another protocol than the port: the text for the operator, and an answer in the client's protocol.

MQTT 5.0, 3.2.2; RFC 9110, 15.5."""

from __future__ import annotations

from rumq.mqtt import packets as p
from rumq.mqtt.connect import version_of_connect
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.reasons import Reason
from rumq.session.handshake.foreign_protocol import METHODS, NO_TLS

CONNECT, HELLO = 0x10, 0x16
TEXT = "this port speaks TLS"
WEBSOCKET_TEXT = "this port speaks WebSocket"


def describe_on_tls(first: bytes) -> str:
    """first: the bytes that came first, at least one"""
    if first[0] == CONNECT:
        return "an MQTT CONNECT without TLS, and this port speaks TLS: set TLS in the client, or use the plain port"
    if first.startswith(METHODS):
        return "an HTTP request without TLS, and this port speaks TLS"
    if first.startswith(b"SSH-"):
        return "an SSH client on a port for TLS"
    if first.startswith((b"PROXY ", b"\r\n\r\n\x00\r\nQUIT\n")):
        return "a PROXY protocol header, and this listener expects none"
    return f"bytes that are no TLS (the first is 0x{first[0]:02X})"


def describe_on_websocket(first: bytes) -> str:
    """first: the bytes that came instead of a request, at least one"""
    if first[0] == CONNECT:
        return "an MQTT CONNECT without WebSocket, and this port speaks WebSocket: use the port for MQTT"
    if first[0] == HELLO:
        return "a TLS hello, and this port speaks WebSocket without TLS: use ws:// or the port for wss://"
    if first.startswith(b"\r\n\r\n\x00\r\nQUIT\n"):
        return "a PROXY protocol header, and this listener expects none"
    return f"bytes that are no HTTP request (the first is 0x{first[0]:02X})"


def answer(first: bytes, text: str = TEXT) -> bytes:
    """An answer in the client's protocol; empty if there is none. text: what is wrong"""
    if first.startswith(METHODS):
        body = f"{text[0].upper()}{text[1:]}.\n"
        return (
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()
    if first[0] == HELLO:
        return NO_TLS
    if first[0] != CONNECT:
        return b""
    try:
        head = frame_at(first, 0, len(first))
        version = version_of_connect(first[head[0] :]) if head is not None else 0
    except MqttFault:
        return b""
    if version == 5:
        return encode(p.Connack(False, Reason.IMPLEMENTATION_SPECIFIC_ERROR, {"reason_string": text}), 5)
    return encode(p.Connack(False, Reason.SERVER_UNAVAILABLE), version) if version else b""
