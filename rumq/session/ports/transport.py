"""A socket as the protocol sees it, and the protocol as the socket sees it.

`rumq.net.connection.Connection` is the transport. Its `link` is the handler of what comes in: a `Handshake` until
CONNACK, then a `Connected`; a link to another shard; or what stands in their place while TLS or WebSocket open, while
bytes are relayed, and once the socket is closed."""
# compiled: warm

from __future__ import annotations

from typing import Any, Protocol

from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason


class Outbox:
    """Bytes that wait for a socket. room: bytes that it still takes

    refused: set it when the room was too little, to be refreshed when there is more again"""

    __slots__ = ("refused", "room")

    room: int
    refused: bool

    def write(self, data: bytes | bytearray | memoryview, owner: tuple[Any, ...] | None = None) -> None:
        """Queue bytes. owner: of bytes that can be read from the log again"""
        raise NotImplementedError

    def waits(self) -> bool:
        """Whether bytes wait to be sent."""
        raise NotImplementedError


class ConnectionHandler(Protocol):
    """What takes the bytes of one connection, and is told of its end.

    is_bus: the other end is no client of its own: another shard, or the inner end of a relay"""

    @property
    def is_bus(self) -> bool: ...

    @property
    def client_id(self) -> str | None:
        """For events; None while it is not known."""

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        """Take whole packets of `data[pos:end]`; returns the position of the first byte not taken."""

    def drained(self) -> None:
        """The outbox has room again."""

    def lost(self, why: str) -> None:
        """The network ended the connection."""

    def turned_away(self, why: str) -> None:
        """Make room for others: it has not logged in."""

    def dismiss(self, reason: Reason, why: str | None = None) -> None:
        """End the connection for a reason of the broker's. MQTT 5.0, 3.14.2.1."""

    def end(self, *, with_will: bool) -> None:
        """End the connection without a word."""


class Receiver:
    """A `ConnectionHandler` of a client, that what is read of its socket is given to without the interpreter."""

    __slots__ = ()

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        """As of `ConnectionHandler`."""
        raise NotImplementedError


class ClientHandler(ConnectionHandler, Protocol):
    """The handler of a client's connection, as a layer below MQTT sees it."""

    def refuse(self, fault: MqttFault, version: int = 0) -> None:
        """End the connection for a fault of the client's, and say which where the version has words for it.

        version: of MQTT, as the layer has seen it in a CONNECT that may not have come to the handler"""


class Transport(Outbox):
    """The outbox of a connection, what it hands its bytes to, and its end.

    is_quiet: set it where what came was answered and changed nothing else: a turn of such needs no stages"""

    __slots__ = ("is_quiet", "link")

    link: ConnectionHandler
    is_quiet: bool

    @property
    def peer(self) -> str:
        """Where the client is, as address and port; which link it is of any other."""
        raise NotImplementedError

    def close(self) -> None:
        """Send what waits, then end the connection; nothing more is read from it."""
        raise NotImplementedError

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""
        raise NotImplementedError

    def resume_reading(self) -> None:
        """Take what was read and not taken, and read on."""
        raise NotImplementedError
