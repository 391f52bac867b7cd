"""A client whose bytes are not MQTT's as they are on the wire: TLS, WebSocket, or both.

Its stream stands where a plain connection has its socket: the pump reads from it as from a socket, so that a plain
connection does not pay for it. What a stream has sealed must go out as it is, so bytes are given to it in pieces: of
those behind them that the log still has, the outbox keeps none. Knows no packet."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from rumq.net.connection import Connection
from rumq.net.tls_relay import ClientEnd, relay

if TYPE_CHECKING:
    from rumq.net.certificate import PeerCertificate
    from rumq.net.pump import Pump

PIECE_BYTES = 1 << 16


class Stream(Protocol):
    """Plain bytes on this side, the wire's on the other."""

    is_open: bool

    @property
    def can_move(self) -> bool:
        """Whether another process could go on with it."""

    def fileno(self) -> int: ...

    def recv_into(self, view: Any) -> int:
        """Plain bytes into `view`; 0 at the end. raises: BlockingIOError if there are none for now, OSError"""

    def put(self, buffers: list[Any], size: int) -> None:
        """Take plain bytes, altogether `size`, to be sent. raises: OSError"""

    def push(self) -> bool:
        """Send what was taken; False while some of it waits for the socket. raises: OSError"""

    def pending(self) -> bool:
        """Whether some of it waits."""

    def shutdown(self, how: int) -> None: ...

    def recv(self, size: int) -> bytes:
        """Bytes of the wire, to be thrown away."""

    def close(self) -> None: ...

    def detach(self) -> int: ...

    def certificate(self) -> PeerCertificate | None: ...

    def facts(self, certificate: PeerCertificate | None) -> bytes:
        """As of `rumq.net.connection_handover`."""


PARTED: Any = (
    None  # in place of the stream of a connection that is closed: a stream leads back to its connection
)


class StreamConnection(Connection):
    """The transport of one link, through a stream."""

    __slots__ = ("_welcome", "stream", "told")

    def __init__(
        self,
        pump: Pump,
        sock: socket.socket,
        peer: str,
        outbox_bytes_max: int,
        welcome: Callable[[Connection], Any],
        told: PeerCertificate | None = None,
    ) -> None:
        """welcome: gives a connection its link, once it is open; told: what a proxy says of the client"""
        super().__init__(pump, sock, peer, outbox_bytes_max)
        self.stream: Stream
        self._welcome = welcome
        self.told = told

    def through(self, stream: Stream) -> None:
        """Read and write through `stream`, which has the socket."""
        self.stream = stream
        self.sock = stream  # type: ignore[assignment]

    @property
    def certificate(self) -> PeerCertificate | None:
        return (self.stream.certificate() if self.stream.is_open else None) or self.told

    def opened(self, stream: Stream) -> None:
        """A stream is open. If it is the uppermost one, let the client in."""
        if stream is self.stream:
            self.link.over()  # type: ignore[attr-defined]
            self.link = self._welcome(self)

    def facts(self) -> bytes:
        return self.stream.facts(self.certificate)

    def give_away(self) -> int:
        """The socket, or if only this process can read it, the other end of a relay."""
        return super().give_away() if self.stream.can_move else relay(self)

    def waits(self) -> bool:
        return bool(self.queue) or self.stream.pending()

    def parted(self) -> None:
        super().parted()
        self.stream = self.sock = PARTED

    def flush(self) -> None:
        self.dirty = False
        if self.stream is PARTED:
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
        elif self.room > 0 and isinstance(self.link, ClientEnd):
            self.link.has_room()

    def _put_out(self) -> None:
        stream, queue = self.stream, self.queue
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
            queue.clear()
            self.room = self.outbox_bytes_max
        else:
            self._keep_unsent(taken)
        if self.refused and not self.blocked:
            self.pump.drained(self)


def pieces(queue: list[tuple[Any, Any]]) -> Iterator[tuple[list[Any], int]]:
    """What waits, in the same order, as (buffers, bytes) of at most PIECE_BYTES."""
    group: list[Any] = []
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
