"""Somebody speaks without TLS to a port that speaks TLS: what to tell the operator, and what to answer in their words.

MQTT 5.0, 3.2.2; RFC 9110, 15.5. Knows no connection."""

from __future__ import annotations

from rumq.mqtt import packets as p
from rumq.mqtt.connect import version_of_connect
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.reasons import Reason
from rumq.session.greeting import METHODS

CONNECT = 0x10
TEXT = "this port speaks TLS"


def said_without_tls(first: bytes) -> str:
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


def answer_without_tls(first: bytes) -> bytes:
    """An answer that the other side understands; nothing if there is none."""
    if first.startswith(METHODS):
        body = TEXT.capitalize() + ".\n"
        return (
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()
    if first[0] != CONNECT:
        return b""
    try:
        head = frame_at(first, 0, len(first))
        version = version_of_connect(first[head[0] :]) if head is not None else 0
    except MqttFault:
        return b""
    if version == 5:
        return encode(p.Connack(False, Reason.IMPLEMENTATION_SPECIFIC_ERROR, {"reason_string": TEXT}), 5)
    return encode(p.Connack(False, Reason.SERVER_UNAVAILABLE), version) if version else b""
