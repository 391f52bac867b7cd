"""The layers between a listener's sockets and MQTT, from the outside in: PROXY header, TLS, WebSocket, mount point."""
# compiled: warm

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rumq.mqtt.mount import Mount
from rumq.net.certificate import PeerCertificate
from rumq.net.connection import Connection
from rumq.net.connection_handover import CLIENT, HandoverState, IdentifiedConnection, decode_state
from rumq.net.listening.mount_stream import MountStream
from rumq.net.listening.proxy_protocol import (
    HEADER_BYTES_MAX,
    BadHeader,
    ProxyHeader,
    ProxyOptions,
    parse_header,
)
from rumq.net.pump import Pump
from rumq.net.socket_stream import SocketStream
from rumq.net.stream import StreamLayer
from rumq.net.tls.tls import TlsServer, TlsStream
from rumq.net.transport.relay import relay
from rumq.net.transport.stream_connection import StreamConnection
from rumq.net.transport.transport_handshake import TransportHandshake, TransportHandshakes
from rumq.session.ports.transport import ConnectionHandler

if TYPE_CHECKING:
    # Where a listener has WebSockets, `rumq.process.listeners.transports` imports it at the start.
    from rumq.net.websocket.websocket_handshake import WebSocketOptions


class MountOptions(NamedTuple):
    """point: the prefix in the broker of the topics of a listener's clients

    packet_bytes_max, connect_bytes_max: of a packet after the login, and before (0: the same)"""

    point: str
    packet_bytes_max: int
    connect_bytes_max: int = 0


class Transports(NamedTuple):
    """The layers of one listener. All its sockets share the TlsServer, which can be reloaded."""

    tls: TlsServer | None = None
    websocket: WebSocketOptions | None = None
    proxy: ProxyOptions | None = None
    mount: MountOptions | None = None


PLAIN = Transports()


class ConnectionSetup(NamedTuple):
    """Builds the layers of the connections of one listener."""

    transports: Transports
    handshakes: TransportHandshakes
    pump: Pump
    outbox_bytes_max: int
    welcome: Callable[[Connection], ConnectionHandler]

    @property
    def is_bare(self) -> bool:
        """Whether MQTT is right above the socket, so that its descriptor is all there is to it."""
        return self.transports == PLAIN

    def accept_bare(self, fd: int, peer: str) -> None:
        """As `accept`, of a descriptor, if `is_bare`."""
        connection = Connection(self.pump, fd, peer, self.outbox_bytes_max)
        connection.link = self.welcome(connection)
        self.pump.add(connection)

    def accept(self, sock: socket.socket, peer: str, host: str | None) -> None:
        """Serve a new connection. host: its address, None at a Unix socket"""
        if self.transports.proxy is None:
            self.build(sock, peer)
        elif self.transports.proxy.believes(host):
            connection = Connection(self.pump, sock, peer, self.outbox_bytes_max)
            self.handshakes.add(ProxyHandshake(self, connection))
            self.pump.add(connection)
        else:
            sock.close()
            self.handshakes.event(
                "connection.refused", peer=peer, transport="proxy",
                why="only proxies may connect here, and this address is not listed as one",
            )  # fmt: skip

    def build(self, sock: socket.socket, peer: str, header: ProxyHeader | None = None, rest: bytes = b"") -> None:
        """Make the layers above a PROXY header. header, rest: it, and what was read behind it"""
        certificate = None
        if header is not None:
            peer = header.peer or peer
            if header.common_name is not None:
                certificate = PeerCertificate(header.common_name, "", (), (), (), math.inf)
        tls, websocket, mount = self.transports.tls, self.transports.websocket, self.transports.mount
        if tls is None and websocket is None and mount is None:
            if certificate is None:
                plain = Connection(self.pump, sock, peer, self.outbox_bytes_max)
            else:
                plain = IdentifiedConnection(self.pump, sock, peer, self.outbox_bytes_max, certificate)
            plain.link = self.welcome(plain)
            self.pump.add(plain)
            plain.keep_descriptor()
            if rest:
                self.pump.feed(plain, rest)
            return
        connection = StreamConnection(self.pump, sock, peer, self.outbox_bytes_max, self.welcome, relay, certificate)
        stream: StreamLayer
        if tls is not None:
            stream = TlsStream(tls, sock, connection, self.handshakes, rest)
        else:
            stream = SocketStream(sock, rest)
        if websocket is not None:
            from rumq.net.websocket.websocket import WebSocketStream

            stream = WebSocketStream(websocket, stream, connection)
        if mount is not None:
            stream = MountStream(
                Mount(mount.point, mount.packet_bytes_max),
                stream,
                connection,
                mount.packet_bytes_max,
                mount.connect_bytes_max,
            )
        connection.use(stream)
        lowest = "tls" if tls is not None else "mqtt" if websocket is None else "websocket"
        connection.handshake = self.handshakes.start(connection, lowest)
        self.pump.add(connection)
        if rest:
            self.pump.read_next_turn(connection)


class ProxyHandshake(TransportHandshake):
    """Waits for a whole PROXY header; the connection behind it is another one on the same socket."""

    __slots__ = ("_setup",)

    def __init__(self, setup: ConnectionSetup, connection: Connection) -> None:
        super().__init__(setup.handshakes, connection, "proxy")
        self._setup = setup

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        self.progress()
        connection = self.transport
        try:
            header = parse_header(bytes(data[pos : min(end, pos + HEADER_BYTES_MAX)]))
        except BadHeader as fault:
            self.lost(str(fault))
            connection.close()
            return end
        if header is None:
            return pos
        connection.pump.forget(connection)
        self.finish()
        self._setup.build(connection.sock, connection.peer, header, bytes(data[pos + header.size : end]))
        return end


def continue_handed_over(
    pump: Pump,
    kind: str,
    sock: socket.socket,
    peer: str,
    data: bytes,
    outbox_bytes_max: int,
    welcome: Callable[[Connection], ConnectionHandler],
) -> None:
    """Serve a connection that another shard has handed over. kind: KNOWN or CLIENT, as it was given"""
    connection: Connection
    if kind == CLIENT:
        connection = Connection(pump, sock, peer, outbox_bytes_max)
    else:
        state, data = decode_state(data)
        connection = known_connection(pump, sock, peer, state, outbox_bytes_max, welcome)
    connection.link = welcome(connection)
    pump.add(connection)
    connection.keep_descriptor()
    pump.feed(connection, data)


def known_connection(
    pump: Pump, sock: socket.socket, peer: str, state: HandoverState, outbox_bytes_max: int,
    welcome: Callable[[Connection], ConnectionHandler],
) -> Connection:  # fmt: skip
    """A connection with a state; it has no handler yet, and is not served yet."""
    if state.websocket is None:
        return IdentifiedConnection(pump, sock, peer, outbox_bytes_max, state.certificate)
    connection = StreamConnection(pump, sock, peer, outbox_bytes_max, welcome, relay, state.certificate)
    restore_websocket(connection, sock, state.websocket, state)
    return connection


def restore_websocket(
    connection: StreamConnection, sock: socket.socket, frames: list[object], state: HandoverState
) -> None:
    """Continue a WebSocket over TCP."""
    from rumq.net.websocket.websocket import WebSocketStream

    below = SocketStream(sock)
    connection.use(WebSocketStream.restored(below, connection, frames, state.frame_bytes_max))
    if state.unsent:
        below.put([state.unsent], len(state.unsent))
        connection.blocked = not below.push()
