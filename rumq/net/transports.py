"""What lies between a listener's sockets and MQTT, from the outside in: PROXY header, TLS, WebSocket.

Knows which comes first, and nothing of what they do."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from rumq.net.connection import Connection
from rumq.net.layered import Layered, Stream
from rumq.net.opening import Openings
from rumq.net.pump import Pump
from rumq.net.raw import RawStream
from rumq.net.tls import TlsServer, TlsStream
from rumq.net.upgrade import WebSocketOptions
from rumq.net.websocket import WebSocketStream


class Transports(NamedTuple):
    """One listener's. All sockets of a listener, and of a reload after another, share its TlsServer."""

    tls: TlsServer | None = None
    websocket: WebSocketOptions | None = None


PLAIN = Transports()


def begin(
    transports: Transports,
    openings: Openings,
    pump: Pump,
    sock: socket.socket,
    peer: str,
    outbox_bytes_max: int,
    welcome: Callable[[Connection], Any],
) -> Connection:
    """A connection on its way in, as one of `openings`."""
    connection = Layered(pump, sock, peer, outbox_bytes_max, welcome)
    stream: Stream = RawStream(sock)
    if transports.tls is not None:
        stream = TlsStream(transports.tls, sock, connection, openings)
    if transports.websocket is not None:
        stream = WebSocketStream(transports.websocket, stream, connection)
    connection.through(stream)
    openings.begin(connection, "tls" if transports.tls is not None else "websocket")
    return connection
