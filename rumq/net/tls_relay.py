"""A client whose TLS ends here and whose session lives in another shard: its bytes go to and fro by a socket pair.

What either side cannot take is not read from the other: at most RELAY_BYTES and a read wait here in each direction.
Knows no packet; the session's own rules (keep alive, quotas, the outbox) are the other shard's.
docs/decisions/0010-transports.md"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.packet_types import PacketType
from rumq.net.connection import Connection
from rumq.session.protocol.reason_strings import told_in

if TYPE_CHECKING:
    from rumq.net.stream_connection import StreamConnection

RELAY_BYTES = 1 << 18
CONNACK = PacketType.CONNACK << 4


class RelaySocket(Connection):
    """Our end of the pair."""

    __slots__ = ()

    def flush(self) -> None:
        super().flush()
        if not self.closing and self.room > 0:
            self.link.has_room()  # type: ignore[attr-defined]


class ClientEnd:
    """The link of the client's connection: what comes goes on to the other shard."""

    is_bus = False
    session = None
    flow = None
    who = None
    claimed = ""

    __slots__ = ("_is_held", "closed", "is_greeted", "near", "transport", "version")

    def __init__(self, connection: StreamConnection, near: RelaySocket) -> None:
        self.transport = connection
        self.near = near
        self.closed = False
        self.is_greeted = False  # the session has answered CONNECT
        self.version = 0  # as the layer that refuses says
        self._is_held = False

    def receive(self, data: Any, pos: int, end: int) -> int:
        self.near.write(bytes(memoryview(data)[pos:end]))
        if self.near.room <= 0:
            self._is_held = True
            self.transport.pause_reading()
        return end

    def near_has_room(self) -> None:
        if self._is_held:
            self._is_held = False
            self.transport.resume_reading()

    def has_room(self) -> None:
        """The client takes bytes again."""
        self.near.link.client_has_room()  # type: ignore[attr-defined]

    def lost(self, why: str) -> None:
        """The client is gone; its last bytes still go to its session."""
        self.closed = True
        self.near.link.finish()  # type: ignore[attr-defined]

    def refuse(self, fault: MqttFault) -> None:
        """End the connection for what a layer below the session has found wrong: the session never hears of it."""
        if self.closed:
            return
        if self.version == 5 and self.is_greeted:
            self.transport.write(encode(p.Disconnect(told_in(PacketType.DISCONNECT, fault.reason)), 5))
        self.end()

    def dismiss(self, reason: object, why: str | None = None) -> None:
        """To be told is for the shard where the session is."""

    def end(self, *, with_will: bool = False) -> None:
        self.closed = True
        self.near.link.finish()  # type: ignore[attr-defined]
        self.transport.close()


class ShardEnd:
    """The link of our end of the pair: what comes goes out to the client."""

    is_bus = True  # no client of its own

    __slots__ = ("_ends", "_is_held", "_outside", "transport")

    def __init__(self, outside: ClientEnd) -> None:
        self._outside = outside
        self.transport = outside.near
        self._is_held = False
        self._ends = False

    def receive(self, data: Any, pos: int, end: int) -> int:
        outer = self._outside.transport
        if not self._outside.closed:
            self._outside.is_greeted |= data[pos] == CONNACK
            outer.write(bytes(memoryview(data)[pos:end]))
            if outer.room <= 0:
                self._is_held = True
                self.transport.pause_reading()
        return end

    def has_room(self) -> None:
        """The other shard takes bytes again."""
        if self._ends:
            if not self.transport.waits():
                self.transport.close()
        else:
            self._outside.near_has_room()

    def client_has_room(self) -> None:
        if self._is_held:
            self._is_held = False
            self.transport.resume_reading()

    def drained(self) -> None: ...

    def finish(self) -> None:
        """Close once everything has gone to the other shard."""
        self._ends = True
        self.client_has_room()  # whatever comes now is for nobody: read it, so that the end is seen
        if not self.transport.waits():
            self.transport.close()

    def lost(self, why: str) -> None:
        """The session's shard has closed the connection, or is gone."""
        self.end()

    def end(self, *, with_will: bool = False) -> None:
        self._ends = True
        self.transport.close()
        if not self._outside.closed:
            self._outside.closed = True
            self._outside.transport.lingers = True  # what was said last may have gone out before
            self._outside.transport.close()


def relay(connection: StreamConnection) -> int:
    """Have a connection's plain bytes go to another shard; returns the descriptor that is for it."""
    near, far = socket.socketpair()
    near.setblocking(False)
    inner = RelaySocket(connection.pump, near, connection.peer, RELAY_BYTES)
    outside = ClientEnd(connection, inner)
    inner.link = ShardEnd(outside)  # type: ignore[assignment]
    connection.link = outside  # type: ignore[assignment]
    connection.pump.add(inner)
    return far.detach()
