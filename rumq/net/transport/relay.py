"""A relay for a client whose session is in another process: over a socket pair if its TLS ends here, over TCP if that
process is on another node.

Backpressure goes both ways: at most RELAY_BYTES and one read wait here in each direction. Keep alive, quotas and the
outbox are applied by the other shard. docs/decisions/0010-transports.md"""
# compiled: hot

from __future__ import annotations

import socket

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.packet_types import PacketType
from rumq.net.connection import Connection, ConnectionOwner
from rumq.net.pump import Pump
from rumq.net.transport.stream_connection import StreamConnection
from rumq.session.protocol.reason_strings import allowed_reason

RELAY_BYTES = 1 << 18
CONNACK = PacketType.CONNACK << 4


class RelaySocket(Connection):
    """Our socket to the other shard."""

    __slots__ = ("shard_end",)

    def __init__(self, pump: ConnectionOwner, sock: socket.socket, peer: str, outbox_bytes_max: int) -> None:
        super().__init__(pump, sock, peer, outbox_bytes_max)
        self.shard_end: ShardEnd | None = None  # stays set once it is closed

    def flush(self) -> None:
        super().flush()
        if self.shard_end is not None and not self.closing and self.room > 0:
            self.shard_end.has_room()

    def unlink(self) -> None:
        super().unlink()
        self.shard_end = None


class ClientEnd:
    """The handler of the client's connection: what it sends goes to the other shard."""

    is_bus = False
    client_id = None

    __slots__ = ("_is_paused", "_pump", "closed", "is_greeted", "near", "transport")

    def __init__(self, pump: Pump, connection: Connection, near: RelaySocket) -> None:
        self._pump = pump
        self.transport = connection
        self.near = near
        self.closed = False
        self.is_greeted = False  # True once the session has answered CONNECT
        self._is_paused = False
        near.link = near.shard_end = ShardEnd(self)
        connection.link = self
        if isinstance(connection, StreamConnection):
            connection.on_room = self.drained

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        self.near.write(bytes(memoryview(data)[pos:end]))
        if self.near.room <= 0:
            self._is_paused = True
            self.transport.pause_reading()
        return end

    def drained(self) -> None:
        """The client takes bytes again."""
        if self.near.shard_end is not None:
            self.near.shard_end.client_has_room()

    def shard_has_room(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()

    def greeted(self) -> None:
        """The session has answered CONNECT: whether it let the client in or not, it is no pending login of ours."""
        self.is_greeted = True
        self._pump.pending_logins.discard(self.transport)

    def lost(self, why: str) -> None:
        """The client is gone; its last bytes still go to its session."""
        self._finish()

    def refuse(self, fault: MqttFault, version: int = 0) -> None:
        """End the connection for a fault that a layer below has found; the session sees a lost connection."""
        if self.closed:
            return
        if version == 5 and self.is_greeted:
            self.transport.write(encode(p.Disconnect(allowed_reason(PacketType.DISCONNECT, fault.reason)), 5))
        self.end()

    def turned_away(self, why: str) -> None:
        self.end()

    def dismiss(self, reason: object, why: str | None = None) -> None:
        """Nothing: the shard of the session ends it."""

    def end(self, *, with_will: bool = False) -> None:
        self._finish()
        self.transport.close()

    def _finish(self) -> None:
        self.closed = True
        if self.near.shard_end is not None:
            self.near.shard_end.finish()


class ShardEnd:
    """The handler of this shard's end of the pair: what comes goes to the client."""

    is_bus = True  # no client of its own
    attempt = 1
    client_id = None

    __slots__ = ("_client_end", "_ends", "_is_paused", "transport")

    def __init__(self, client_end: ClientEnd) -> None:
        self._client_end = client_end
        self.transport = client_end.near
        self._is_paused = False
        self._ends = False

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        client_end = self._client_end
        if not client_end.closed:
            client = client_end.transport
            if not client_end.is_greeted and data[pos] == CONNACK:
                client_end.greeted()
            client.write(bytes(memoryview(data)[pos:end]))
            if client.room <= 0:
                self._is_paused = True
                client.refused = True
                self.transport.pause_reading()
        return end

    def has_room(self) -> None:
        """The other shard takes bytes again."""
        if self._ends:
            if not self.transport.waits():
                self.transport.close()
        else:
            self._client_end.shard_has_room()

    def client_has_room(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()

    def drained(self) -> None: ...

    def finish(self) -> None:
        """Close once everything has gone to the other shard."""
        self._ends = True
        self.client_has_room()  # read and drop what still comes, so that the end is seen
        if not self.transport.waits():
            self.transport.close()

    def turned_away(self, why: str) -> None:
        self.end()

    def dismiss(self, reason: object, why: str | None = None) -> None: ...

    def lost(self, why: str) -> None:
        """The session's shard has closed the connection, or is gone."""
        self.end()

    def end(self, *, with_will: bool = False) -> None:
        self._ends = True
        self.transport.close()
        if not self._client_end.closed:
            self._client_end.closed = True
            self._client_end.transport.lingers = True  # the last packet may have been sent before
            self._client_end.transport.close()


def relay(connection: StreamConnection, handler: type[ClientEnd] = ClientEnd) -> int:
    """Have a connection's plain bytes go to another shard. returns: the descriptor for it"""
    near, far = socket.socketpair()
    near.setblocking(False)
    shard_socket = RelaySocket(connection.pump, near, connection.peer, RELAY_BYTES)
    handler(connection.pump, connection, shard_socket)
    connection.pump.add(shard_socket)
    return far.detach()
