"""Mutual TLS between nodes: each shows a certificate of the cluster's authority, with its own name in it.

Who dials compares it with the node that was wanted, before anything is sent; who accepts, with the greeting.

What is above sees a plain socket, one end of a pair; TLS is spoken at the other end, in the same process. So relays and
the bus are the same with TLS and without, at the price of two copies more."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable

from rumq.cluster.links.impostor_log import ImpostorLog
from rumq.cluster.links.node_names import NodeNames
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.net.tls.tls import TlsServer, TlsStream
from rumq.net.tls.tls_client import TlsClient, TlsClientStream, make_client_context
from rumq.net.tls.tls_options import TlsOptions
from rumq.net.transport.relay import RELAY_BYTES, ClientEnd, relay
from rumq.net.transport.stream_connection import StreamConnection
from rumq.net.transport.transport_handshake import TransportHandshakes
from rumq.session.ports.transport import ConnectionHandler


class Tunnel(ClientEnd):
    """The handler of a TLS connection to another node."""

    is_bus = True  # no client of its own
    attempt = 1

    __slots__ = ()


class NodeTls:
    """certificate, key, authority: PEM files; key "" if it is in the first; names: what certificates must say"""

    def __init__(
        self, certificate: str, key: str, authority: str, names: NodeNames,
        tell: Callable[..., None] = lambda name, **fields: None,
    ) -> None:  # fmt: skip
        """tell: takes events. raises: TlsSettingsError"""
        options = TlsOptions(
            certfile=certificate, keyfile=key, cafile=authority, client_certificates="required",
            version_min="1.3", alpn=(),
        )  # fmt: skip
        self._options = options
        self._server, self._client = TlsServer(options), TlsClient(options)
        self.names = names
        self._impostors = ImpostorLog(tell)

    def reload(self) -> None:
        """Read the files again, for new connections; the others keep theirs.

        raises: TlsSettingsError, and nothing has changed"""
        make_client_context(self._options)
        self._server.reload(self._options)
        self._client.reload(self._options)

    def dialled(self, pump: Pump, sock: socket.socket, peer: str, node: str) -> socket.socket:
        """TLS over a socket that is being connected. node: id of whom it is to reach. returns: the plain end"""

        def opened(_: Connection) -> ConnectionHandler:
            problem = self.names.maybe_problem(uris_of(connection), node)
            if problem is not None:
                self._impostors.met(node, f"{peer}: {problem}", time.monotonic())
                raise OSError(errno.EPROTO, problem)  # nothing was sent: TLS has just been opened
            return connection.link

        connection = StreamConnection(pump, sock, peer, RELAY_BYTES, opened, relay)
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
        then: Callable[[StreamConnection, socket.socket, tuple[str, ...]], None],
    ) -> StreamConnection:
        """TLS over a socket that was accepted. then: takes the connection, the plain end, and the URIs of the
        certificate, once TLS is open"""

        def opened(_: Connection) -> ConnectionHandler:
            then(connection, plain_end(connection), uris_of(connection))
            return connection.link

        connection = StreamConnection(pump, sock, peer, RELAY_BYTES, opened, relay)
        connection.use(TlsStream(self._server, sock, connection, handshakes))
        connection.handshake = handshakes.start(connection, "tls")
        pump.pending_logins.discard(connection)  # a node has many connections from one address
        pump.add(connection)
        return connection


def uris_of(connection: StreamConnection) -> tuple[str, ...]:
    """Of the other end's certificate, once TLS is open."""
    certificate = connection.certificate
    return certificate.uri if certificate is not None else ()


def plain_end(connection: StreamConnection) -> socket.socket:
    sock = socket.socket(fileno=relay(connection, Tunnel))
    sock.setblocking(False)
    return sock
