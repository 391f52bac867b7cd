"""Mutual TLS between nodes: each shows a certificate of the cluster's authority.

What is above sees a plain socket, one end of a pair; TLS is spoken at the other end, in the same process. So relays and
the bus are the same with TLS and without, at the price of two copies more."""

from __future__ import annotations

import socket
from collections.abc import Callable

from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.net.relay import RELAY_BYTES, ClientEnd, relay
from rumq.net.stream_connection import StreamConnection
from rumq.net.tls import TlsServer, TlsStream
from rumq.net.tls_client import TlsClient, TlsClientStream
from rumq.net.tls_options import TlsOptions
from rumq.net.transport_handshake import TransportHandshakes
from rumq.session.connection.transport import ConnectionHandler


class Tunnel(ClientEnd):
    """The handler of a TLS connection to another node."""

    is_bus = True  # no client of its own
    attempt = 1

    __slots__ = ()


class NodeTls:
    """certificate, key, authority: PEM files; key "" if it is in the first"""

    def __init__(self, certificate: str, key: str, authority: str) -> None:
        """raises: TlsSettingsError"""
        options = TlsOptions(
            certfile=certificate, keyfile=key, cafile=authority, client_certificates="required",
            version_min="1.3", alpn=(),
        )  # fmt: skip
        self._server, self._client = TlsServer(options), TlsClient(options)

    def dialled(self, pump: Pump, sock: socket.socket, peer: str) -> socket.socket:
        """TLS over a socket that is being connected. returns: the plain end"""
        connection = StreamConnection(pump, sock, peer, RELAY_BYTES, lambda each: each.link, relay)
        connection.use(TlsClientStream(self._client, sock, connection))
        connection.blocked = True  # until it is connected
        plain = plain_end(connection)
        pump.add(connection)
        return plain

    def accepted(
        self,
        pump: Pump,
        handshakes: TransportHandshakes,
        sock: socket.socket,
        peer: str,
        then: Callable[[socket.socket, str], None],
    ) -> None:
        """TLS over a socket that was accepted. then: takes the plain end, once TLS is open"""

        def opened(_: Connection) -> ConnectionHandler:
            then(plain_end(connection), peer)
            return connection.link

        connection = StreamConnection(pump, sock, peer, RELAY_BYTES, opened, relay)
        connection.use(TlsStream(self._server, sock, connection, handshakes))
        connection.handshake = handshakes.start(connection, "tls")
        pump.pending_logins.discard(connection)  # a node has many connections from one address
        pump.add(connection)


def plain_end(connection: StreamConnection) -> socket.socket:
    sock = socket.socket(fileno=relay(connection, Tunnel))
    sock.setblocking(False)
    return sock
