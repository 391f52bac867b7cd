"""What one shard tells another about a connection that it hands over, beside its socket.

A plain connection needs none of it. A WebSocket over TCP goes with the state of its frames; one over TLS is a socket
pair by then (`rumq.net.transport.relay`). Either goes with the client's certificate."""

from __future__ import annotations

import socket
from typing import Any

import msgspec

from rumq.net.certificate import PeerCertificate
from rumq.net.connection import Connection, ConnectionOwner

KNOWN = "known"  # a connection with a state, as opposed to
CLIENT = "client"
LENGTH_BYTES = 4


class HandoverState(msgspec.Struct, frozen=True, array_like=True):
    """websocket: as of `rumq.net.kernels.frames.Incoming.state`, None without WebSocket

    unsent: bytes of the wire that wait for the socket"""

    certificate: PeerCertificate | None
    websocket: list[Any] | None = None
    frame_bytes_max: int = 0
    unsent: bytes = b""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(HandoverState)


def encode_state(state: HandoverState) -> bytes:
    data = _encoder.encode(state)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def decode_state(data: bytes) -> tuple[HandoverState, bytes]:
    """The state, and the client's bytes behind it."""
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big")
    return _decoder.decode(data[LENGTH_BYTES:end]), data[end:]


class IdentifiedConnection(Connection):
    """A plain connection whose client is known by a certificate that a proxy or another shard has checked."""

    __slots__ = ("_certificate",)

    def __init__(
        self,
        pump: ConnectionOwner,
        sock: socket.socket,
        peer: str,
        outbox_bytes_max: int,
        certificate: PeerCertificate | None,
    ) -> None:
        super().__init__(pump, sock, peer, outbox_bytes_max)
        self._certificate = certificate

    @property
    def certificate(self) -> PeerCertificate | None:
        return self._certificate

    def handover_state(self) -> bytes:
        return encode_state(HandoverState(self._certificate))
