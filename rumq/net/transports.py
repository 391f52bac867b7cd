"""What lies between a listener's sockets and MQTT, from the outside in: PROXY header, TLS, WebSocket.

Knows which comes first, and nothing of what they do."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from rumq.net.connection import Connection
from rumq.net.layered import Layered
from rumq.net.opening import Openings
from rumq.net.pump import Pump
from rumq.net.tls import TlsServer, TlsStream


class Transports(NamedTuple):
    """One listener's. All sockets of a listener, and of a reload after another, share its TlsServer."""

    tls: TlsServer | None = None


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
    assert transports.tls is not None
    connection.through(TlsStream(transports.tls, sock, connection, openings))
    openings.begin(connection, "tls")
    return connection
