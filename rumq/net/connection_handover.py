"""What goes from shard to shard with a connection that is more than a socket, and the connection that comes of it.

A plain connection needs nothing of this. Of the others, a WebSocket over TCP goes with its state, one over TLS is a
pair of sockets by now (`rumq.net.tls_relay`), and who the client is by its certificate goes with either."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import msgspec

from rumq.net.certificate import PeerCertificate
from rumq.net.connection import Connection
from rumq.net.pump import Pump

KNOWN = "known"
CLIENT = "client"
LENGTH_BYTES = 4


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """websocket: where its frames stand, None if there are none; unsent: bytes of the wire that wait for the socket"""

    certificate: PeerCertificate | None
    websocket: list[Any] | None = None
    frame_bytes_max: int = 0
    unsent: bytes = b""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Facts)


def packed(facts: Facts) -> bytes:
    data = _encoder.encode(facts)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def unpacked(data: bytes) -> tuple[Facts, bytes]:
    """The facts, and the client's bytes behind them."""
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big")
    return _decoder.decode(data[LENGTH_BYTES:end]), data[end:]


class Known(Connection):
    """A plain connection of whom somebody else has told who is behind it."""

    __slots__ = ("certificate",)

    def facts(self) -> bytes:
        return packed(Facts(self.certificate))


def take_in(
    pump: Pump,
    kind: str,
    sock: socket.socket,
    peer: str,
    data: bytes,
    outbox_bytes_max: int,
    welcome: Callable[[Connection], Any],
) -> None:
    """Go on with a connection that another shard has handed over. kind: KNOWN or CLIENT, as it was given"""
    connection: Connection
    if kind == CLIENT:
        connection = Connection(pump, sock, peer, outbox_bytes_max)
    else:
        facts, data = unpacked(data)
        if facts.websocket is None:
            connection = Known(pump, sock, peer, outbox_bytes_max)
            connection.certificate = facts.certificate
        else:
            connection = taken_up(pump, sock, peer, outbox_bytes_max, welcome, facts)
    connection.link = welcome(connection)
    pump.add(connection)
    pump.feed(connection, data)


def taken_up(
    pump: Pump, sock: socket.socket, peer: str, outbox_bytes_max: int, welcome: Callable[[Connection], Any],
    facts: Facts,
) -> Connection:  # fmt: skip
    """A WebSocket that is open already."""
    from rumq.net.socket_stream import SocketStream
    from rumq.net.stream_connection import StreamConnection
    from rumq.net.websocket import WebSocketStream

    assert facts.websocket is not None
    layered = StreamConnection(pump, sock, peer, outbox_bytes_max, welcome, facts.certificate)
    below = SocketStream(sock)
    stream = WebSocketStream.taken_up(below, layered, facts.websocket, facts.frame_bytes_max)
    layered.through(stream)
    if facts.unsent:
        below.put([facts.unsent], len(facts.unsent))
        layered.blocked = not below.push()
    return layered
