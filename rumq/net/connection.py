"""One client's socket: the bytes of an unfinished packet, and the bounded outbox.

An idle connection owns no buffer. When the socket is full, what comes from the log is cut back to whole frames: the
rest is read from the log again. The handler of incoming bytes is the connection's `link`."""
# compiled: hot

from __future__ import annotations

import os
import socket
from errno import EAGAIN, EIO
from typing import Protocol, TypeAlias

from rumq.net.certificate import PeerCertificate
from rumq.net.kernels import sockets
from rumq.net.kernels.addresses import packed, unpacked
from rumq.net.kernels.sockets import BUFFERS_MAX
from rumq.net.socket_stream import SocketStream
from rumq.net.stream import ReadBuffer, StreamLayer
from rumq.session.ports.transport import ConnectionHandler, Transport


class OutboxRefill(Protocol):
    """Delivers from the log, and reads again what a full socket did not take."""

    def cut_at(self, owned: LogPiece, sent: int) -> int:
        """The socket took `sent` bytes of a piece. returns: how many of its bytes the outbox keeps"""


LogPiece: TypeAlias = "tuple[OutboxRefill, *tuple[object, ...]]"  # behind the reader: its own notes on the piece
Piece: TypeAlias = "tuple[ReadBuffer, LogPiece | None]"  # and whose it is, if it can be read from the log again


class Tap(Protocol):
    """Told of the bytes of one connection, as MQTT: of an operator's trace. Must not raise"""

    def received(self, data: bytes) -> None: ...

    def sent(self, data: ReadBuffer) -> None: ...


class ConnectionOwner:
    """The event loop that serves a connection: `rumq.net.pump.Pump`. dirty: to be flushed at the end of the turn"""

    dirty: list[Connection]

    def drop(self, connection: Connection, *, lingers: bool = False) -> None:
        """Close its socket. lingers: only once the client has read what was sent last"""
        raise NotImplementedError

    def forget(self, connection: Connection) -> None:
        """Serve it no more, without closing its socket."""
        raise NotImplementedError

    def resume(self, connection: Connection) -> None:
        """Handle what was read and not parsed, then read on."""
        raise NotImplementedError

    def drained(self, connection: Connection) -> None:
        """Its outbox has room again."""
        raise NotImplementedError

    def stop_writing(self, connection: Connection, why: str) -> None:
        """Sending has failed; what the client sent before is still read."""
        raise NotImplementedError


class ClosedHandler:
    """The handler of a closed connection: the socket keeps no reference to its client."""

    is_bus = False
    closed = True
    client_id = transport = None

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        return end

    def drained(self) -> None: ...

    def lost(self, why: str) -> None: ...

    def turned_away(self, why: str) -> None: ...

    def dismiss(self, reason: object, why: str | None = None) -> None: ...

    def end(self, *, with_will: bool = False) -> None: ...


CLOSED = ClosedHandler()


class Extras:
    """What few connections have: an object of the socket, or a layer above it; a peer that is no address of IPv4; a
    tap; a failure. The fields are described at those of the connection."""

    __slots__ = ("peer", "sock", "tap", "write_failed")

    def __init__(self) -> None:
        self.sock: socket.socket | None = None
        self.peer: str | None = None
        self.tap: Tap | None = None
        self.write_failed = ""


class Connection(Transport):
    """The transport of one handler."""

    __slots__ = (
        "_ipv4", "_port", "blocked", "bytes_in", "bytes_out", "closing", "dirty", "ended", "extras", "fd", "is_bulk",
        "is_plain", "lingers", "outbox_bytes_max", "pump", "queue", "reading", "reading_paused", "unparsed",
    )  # fmt: skip

    def __init__(self, pump: ConnectionOwner, sock: socket.socket | int, peer: str, outbox_bytes_max: int) -> None:
        """sock: or the descriptor of a plain one, which there is no object of"""
        self.pump = pump
        self.extras: Extras | None = None  # None: all of them have the values that they begin with
        self.is_plain = True  # its bytes are what the handler gets, and it is one of the system
        if isinstance(sock, int):
            self.fd = sock  # -1 once the pump no longer serves it
        else:
            self.own_extras().sock, self.fd = sock, sock.fileno()
            self.is_plain = type(sock) is socket.socket
        address = packed(peer)
        if address >= 0:
            self._ipv4, self._port = address >> 16, address & 0xFFFF
        else:
            self._ipv4 = self._port = 0
            self.own_extras().peer = peer
        self.link: ConnectionHandler
        self.unparsed: bytearray | None = None
        # What is to be sent; None: nothing. Most turns have one piece for a connection: it needs no list.
        self.queue: Piece | list[Piece] | None = None
        self.outbox_bytes_max = outbox_bytes_max
        self.room = outbox_bytes_max
        self.is_bulk = False  # True if the last read brought many bytes
        self.blocked = False  # True while the socket is full: epoll reports when it is writable
        self.is_quiet = False  # True if what came last was answered and changed nothing else
        self.refused = False  # True while a sender waits for room in the outbox
        self.dirty = False
        self.ended = False  # True once the client has closed: only the socket's buffer is left to read
        self.closing = False
        self.reading = True  # False while the outbox is too full
        self.reading_paused = False  # True while its handler wants no more bytes
        self.lingers = False  # True if its client is to read what was sent at the end
        self.bytes_in = 0
        self.bytes_out = 0

    @property
    def sock(self) -> socket.socket:
        """Its socket, or the layer above it that is read through. Ask before the pump no longer serves it."""
        extras = self.own_extras()
        if extras.sock is None:
            extras.sock = socket.socket(fileno=self.fd)
        return extras.sock

    @sock.setter
    def sock(self, sock: socket.socket) -> None:
        self.own_extras().sock = sock

    @property
    def peer(self) -> str:
        """Where the client is, as address and port."""
        extras = self.extras
        return unpacked(self._ipv4, self._port) if extras is None or extras.peer is None else extras.peer

    @property
    def tap(self) -> Tap | None:
        """Is told of its bytes."""
        return None if self.extras is None else self.extras.tap

    @tap.setter
    def tap(self, value: Tap | None) -> None:
        if self.extras is not None or value is not None:
            self.own_extras().tap = value

    @property
    def write_failed(self) -> str:
        """Why sending failed; what the client sent before is still read."""
        return "" if self.extras is None else self.extras.write_failed

    @write_failed.setter
    def write_failed(self, value: str) -> None:
        if self.extras is not None or value:
            self.own_extras().write_failed = value

    def own_extras(self) -> Extras:
        if self.extras is None:
            self.extras = Extras()
        return self.extras

    def keep_descriptor(self) -> None:
        """Keep nothing of the socket but its descriptor, which the pump serves: an object of it is 96 bytes.

        The object must be nobody else's; who asks for it gets another one. Nothing happens if it is no plain one."""
        if self.is_plain and self.extras is not None and self.extras.sock is not None:
            self.extras.sock.detach()
            self.extras.sock = None
            if self.extras.peer is None and self.extras.tap is None and not self.extras.write_failed:
                self.extras = None

    @property
    def certificate(self) -> PeerCertificate | None:
        """What is known of the client by its certificate."""
        return None

    def write(self, data: ReadBuffer, owner: LogPiece | None = None) -> None:
        """Queue bytes; they leave at the end of the turn. owner: of bytes that can be read from the log again"""
        extras = self.extras
        if extras is not None and extras.tap is not None:
            extras.tap.sent(data)
        queue = self.queue
        if queue is None:
            self.queue = (data, owner)
        elif isinstance(queue, tuple):
            self.queue = [queue, (data, owner)]
        else:
            queue.append((data, owner))
        self.room -= len(data)
        if not self.dirty:
            self.dirty = True
            self.pump.dirty.append(self)

    def unsent(self) -> list[Piece]:
        """What is to be sent, piece by piece."""
        queue = self.queue
        return [queue] if isinstance(queue, tuple) else queue or []

    def disown(self) -> None:
        """What is to be sent must leave, whole: it is not to be read from the log again."""
        self.queue = [(data, None) for data, _ in self.unsent()] or None

    def waits(self) -> bool:
        """Whether something is still to be sent."""
        return self.queue is not None

    def empty(self) -> None:
        """Nothing waits to be sent any more."""
        self.queue = None
        self.room = self.outbox_bytes_max

    def close(self) -> None:
        """Send the outbox as far as the socket takes it, then end the connection."""
        self.closing = True
        if not self.dirty:
            self.dirty = True
            self.pump.dirty.append(self)

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""
        self.reading_paused = True

    def resume_reading(self) -> None:
        """Handle what was read and not parsed, and read on."""
        if self.reading_paused and not self.closing:
            self.reading_paused = False
            self.pump.resume(self)

    def handover_state(self) -> bytes:
        """What another shard needs with `hand_over`, besides the peer; nothing for a plain connection."""
        return b""

    def hand_over(self) -> int:
        """Let another process serve the client. returns: the descriptor for it, which the caller owns"""
        sock = self.sock
        self.pump.forget(self)
        self.unlink()
        return sock.detach()

    def lingering_stream(self) -> StreamLayer:
        """Its socket for a lingering close."""
        return SocketStream(self.sock)

    def unlink(self) -> None:
        """Drop the references that lead back here, once the pump serves it no more."""
        self.link = CLOSED

    def flush(self) -> None:
        """Send the outbox; called at the end of a turn, and when a full socket has room again."""
        self.dirty = False
        queue = self.queue
        if self.closing and queue:
            self.lingers = True
        if queue is not None and not self.blocked:
            self._send(queue)
        if self.closing:
            self.pump.drop(self, lingers=self.lingers and not self.write_failed)

    def _send(self, queue: Piece | list[Piece]) -> None:
        if isinstance(queue, tuple):
            piece = queue[0]
            waiting = len(piece)
            sent = sockets.send_one(self.fd, piece) if self.is_plain else send_by(self.sock, [queue])
        else:
            pieces = queue
            waiting = sum([len(data) for data, _ in queue])
            if len(queue) > BUFFERS_MAX:
                pieces = [(b"".join([data for data, _ in queue]), None)]
            sent = sockets.send(self.fd, pieces) if self.is_plain else send_by(self.sock, pieces)
        if sent < 0:
            if sent != -EAGAIN:
                self.pump.stop_writing(self, os.strerror(-sent))
                return
            sent = 0
        self.bytes_out += sent
        if sent == waiting:
            self.empty()
            if self.refused:
                self.pump.drained(self)
        else:
            self.blocked = True
            self._keep_unsent(sent)

    def _keep_unsent(self, sent: int) -> None:
        """Keep what the socket did not take; of bytes that can be read again, only up to the end of a frame."""
        kept: list[Piece] = []
        size = 0
        for data, owner in self.unsent():
            length = len(data)
            if sent >= length:
                sent -= length
                continue
            end = length if owner is None else owner[0].cut_at(owner, sent)
            if end > sent:
                rest: ReadBuffer = bytes(memoryview(data)[sent:end]) if owner is not None else memoryview(data)[sent:]
                kept.append((rest, None))
                size += len(rest)
            sent = 0
        self.queue = kept or None
        self.room = self.outbox_bytes_max - size

    def writable(self) -> None:
        """The socket has room again."""
        self.blocked = False
        self.flush()
        if not self.blocked and not self.closing:
            self.pump.drained(self)


def send_by(sock: socket.socket, pieces: list[Piece]) -> int:
    """As `sockets.send`, for what only looks like a socket."""
    try:
        return sock.send(pieces[0][0]) if len(pieces) == 1 else sock.sendmsg([data for data, _ in pieces])
    except OSError as fault:
        return -(fault.errno or (EAGAIN if isinstance(fault, BlockingIOError) else EIO))
