"""What lies between a listener's sockets and MQTT, from the outside in: PROXY header, TLS, WebSocket, mount point.

Knows which comes first, and nothing of what they do."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from rumq.mqtt.mount import Mount
from rumq.net.certificate import PeerCertificate
from rumq.net.connection import Connection
from rumq.net.connection_handover import Known
from rumq.net.mount_stream import MountStream
from rumq.net.proxy_protocol import HEADER_BYTES_MAX, BadHeader, ProxyOptions, Told, header_of
from rumq.net.pump import Pump
from rumq.net.socket_stream import SocketStream
from rumq.net.stream_connection import Stream, StreamConnection
from rumq.net.tls import TlsServer, TlsStream
from rumq.net.transport_handshake import TransportHandshake, TransportHandshakes
from rumq.net.websocket import WebSocketStream
from rumq.net.websocket_handshake import WebSocketOptions


class Transports(NamedTuple):
    """One listener's. All sockets of a listener share its TlsServer, which is the one to be reloaded."""

    tls: TlsServer | None = None
    websocket: WebSocketOptions | None = None
    proxy: ProxyOptions | None = None
    mount: Mounting | None = None


class Mounting(NamedTuple):
    """What the topics of a listener's clients begin with in the broker, and the largest packet they may send, before
    they have logged in and then."""

    point: str
    packet_bytes_max: int
    connect_bytes_max: int = 0  # the same


PLAIN = Transports()


class Entry(NamedTuple):
    """What connections of one listener need on their way in."""

    transports: Transports
    openings: TransportHandshakes
    pump: Pump
    outbox_bytes_max: int
    welcome: Callable[[Connection], Any]

    def begin(self, sock: socket.socket, peer: str, host: str | None) -> None:
        """Take a connection that was accepted. host: its address, None at a Unix socket"""
        if self.transports.proxy is None:
            self.go_on(sock, peer)
        elif self.transports.proxy.believes(host):
            connection = Connection(self.pump, sock, peer, self.outbox_bytes_max)
            self.openings.wait(Header(self, connection))
            self.pump.add(connection)
        else:
            sock.close()
            self.openings.event(
                "connection.refused", peer=peer, transport="proxy",
                why="only proxies may connect here, and this address is not listed as one",
            )  # fmt: skip

    def go_on(self, sock: socket.socket, peer: str, told: Told | None = None, rest: bytes = b"") -> None:
        """What lies below MQTT, if anything does. told, rest: of a PROXY header, and what was read behind it"""
        who = None
        if told is not None:
            peer = told.peer or peer
            if told.common_name is not None:
                who = PeerCertificate(told.common_name, "", (), (), (), math.inf)
        tls, websocket, mount = self.transports.tls, self.transports.websocket, self.transports.mount
        if tls is None and websocket is None and mount is None:
            plain = Connection if who is None else Known
            connection = plain(self.pump, sock, peer, self.outbox_bytes_max)
            if who is not None:
                connection.certificate = who
            connection.link = self.welcome(connection)
            self.pump.add(connection)
            if rest:
                self.pump.feed(connection, rest)
            return
        layered = StreamConnection(self.pump, sock, peer, self.outbox_bytes_max, self.welcome, who)
        stream: Stream
        if tls is not None:
            stream = TlsStream(tls, sock, layered, self.openings, rest)
        else:
            stream = SocketStream(sock, rest)
        if websocket is not None:
            stream = WebSocketStream(websocket, stream, layered)
        if mount is not None:
            stream = MountStream(
                Mount(mount.point, mount.packet_bytes_max),
                stream,
                layered,
                mount.packet_bytes_max,
                mount.connect_bytes_max,
            )
        layered.through(stream)
        self.openings.begin(
            layered, "tls" if tls is not None else "mqtt" if websocket is None else "websocket"
        )
        self.pump.add(layered)
        if rest:
            self.pump.again(layered)


class Header(TransportHandshake):
    """Waits for the whole of a PROXY header; the connection behind it is another one on the same socket."""

    __slots__ = ("_entry",)

    def __init__(self, entry: Entry, connection: Connection) -> None:
        super().__init__(entry.openings, connection, "proxy")
        self._entry = entry

    def receive(self, data: Any, pos: int, end: int) -> int:
        self.heard = True
        try:
            told = header_of(bytes(data[pos : min(end, pos + HEADER_BYTES_MAX)]))
        except BadHeader as fault:
            self.lost(str(fault))
            self.transport.close()
            return end
        if told is None:
            return pos
        connection = self.transport
        connection.pump.forget(connection)
        self.over()
        self._entry.go_on(connection.sock, connection.peer, told, bytes(data[pos + told.size : end]))
        return end
