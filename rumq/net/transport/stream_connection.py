"""A connection through transport layers: TLS, WebSocket, a mount point.

The pump reads from the uppermost stream as from a socket, so a plain connection does not pay for the layers. What a
stream has encoded must be sent as it is; so bytes are put in pieces, and only those put are kept from being cut back
to the log."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import cast

from rumq.net.certificate import PeerCertificate
from rumq.net.connection import Connection, LogPiece
from rumq.net.pump import Pump
from rumq.net.stream import ReadBuffer, StreamLayer
from rumq.net.transport.transport_handshake import TransportHandshake
from rumq.session.ports.transport import ConnectionHandler

PIECE_BYTES = 1 << 16


CLOSED = cast(StreamLayer, None)  # of a closed connection: a stream refers back to its connection


class StreamConnection(Connection):
    """The transport of one handler, through a stream."""

    __slots__ = ("_known_certificate", "_make_relay", "_welcome", "handshake", "on_room", "stream")

    pump: Pump

    def __init__(
        self,
        pump: Pump,
        sock: socket.socket,
        peer: str,
        outbox_bytes_max: int,
        welcome: Callable[[Connection], ConnectionHandler],
        make_relay: Callable[[StreamConnection], int],
        known_certificate: PeerCertificate | None = None,
    ) -> None:
        """welcome: makes the handler, once all layers are open

        make_relay: gives the client to another process where only this one can read its bytes; returns a descriptor
        known_certificate: as told by a proxy or by another shard"""
        super().__init__(pump, sock, peer, outbox_bytes_max)
        self.is_plain = False
        self.stream: StreamLayer
        self.handshake: TransportHandshake | None = None  # until all layers are open
        self.on_room: Callable[[], None] | None = None  # called when the outbox has room
        self._welcome, self._make_relay = welcome, make_relay
        self._known_certificate = known_certificate

    def use(self, stream: StreamLayer) -> None:
        """Read and write through `stream`, which has the socket."""
        self.stream = stream
        self.sock = stream  # type: ignore[assignment]  # it has what the pump calls of a socket

    @property
    def certificate(self) -> PeerCertificate | None:
        return (self.stream.certificate() if self.stream.is_open else None) or self._known_certificate

    @property
    def security(self) -> str | None:
        """How its bytes are encrypted on the way here, "TLSv1.3, cipher"; None where another process has that layer."""
        layer: object = self.stream
        while layer is not CLOSED and layer is not None:
            found = getattr(layer, "security", None)
            if isinstance(found, str):
                return found
            layer = getattr(layer, "below", None)
        return None

    def opened(self, stream: StreamLayer) -> None:
        """A layer is open. After the uppermost one the client gets its handler."""
        if stream is self.stream:
            if self.handshake is not None:
                self.handshake.finish()
                self.handshake = None
            self.link = self._welcome(self)

    def handover_state(self) -> bytes:
        return self.stream.handover_state(self.certificate)

    def hand_over(self) -> int:
        """The socket; or the other end of a relay, if only this process can read the layers."""
        return super().hand_over() if self.stream.can_move else self._make_relay(self)

    def waits(self) -> bool:
        return self.queue is not None or self.stream.pending()

    def lingering_stream(self) -> StreamLayer:
        return self.stream

    def unlink(self) -> None:
        super().unlink()
        self.use(CLOSED)
        self.handshake = self.on_room = None

    def flush(self) -> None:
        self.dirty = False
        if self.stream is CLOSED:
            return
        if self.closing and self.waits():
            self.lingers = True
        if not self.blocked:
            try:
                self._put_out()
            except OSError as fault:
                self.pump.stop_writing(self, fault.strerror or "connection lost")
        if self.closing:
            self.pump.drop(self, lingers=self.lingers and not self.write_failed)
        elif self.on_room is not None and self.room > 0:
            self.on_room()

    def _put_out(self) -> None:
        stream, queue = self.stream, self.unsent()
        if not stream.push():
            self.blocked = True
            return
        if not queue:
            return
        taken = 0
        for buffers, size in pieces(queue):
            stream.put(buffers, size)
            taken += size
            if not stream.push():
                self.blocked = True
                break
        self.bytes_out += taken
        if not self.blocked or taken == sum([len(data) for data, _ in queue]):
            self.empty()
        else:
            self._keep_unsent(taken)
        if self.refused and not self.blocked:
            self.pump.drained(self)


def pieces(queue: list[tuple[ReadBuffer, LogPiece | None]]) -> Iterator[tuple[list[ReadBuffer], int]]:
    """The outbox in the same order, as (buffers, bytes) of at most PIECE_BYTES."""
    group: list[ReadBuffer] = []
    size = 0
    for data, _ in queue:
        length = len(data)
        if group and size + length > PIECE_BYTES:
            yield group, size
            group, size = [], 0
        if length <= PIECE_BYTES:
            group.append(data)
            size += length
            continue
        view = memoryview(data)
        for at in range(0, length, PIECE_BYTES):
            part = view[at : at + PIECE_BYTES]
            yield [part], len(part)
    if group:
        yield group, size
