"""The pump: the event loop of a shard over one epoll set, epoll(7).

A turn waits, reads from each ready connection a bounded piece, lets the shard route it, and sends. Sockets are edge
triggered, so a turn costs no epoll_ctl. An exception while serving a connection, in its handler or in a layer below,
ends that connection and no turn."""
# compiled: hot

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from errno import EAGAIN

from rumq.net.connection import Connection, ConnectionOwner
from rumq.net.kernels import sockets
from rumq.net.kernels.epoll import EVENTS_MAX, EpollSet
from rumq.net.kernels.sockets import BULK_BYTES
from rumq.net.lingering_close import LingeringClose
from rumq.net.pending_logins import PendingLogins
from rumq.net.sockets.connection_table import ConnectionTable
from rumq.net.turn_handler import TurnHandler
from rumq.session.ports.transport import Receiver

READ_BYTES = 1 << 18
PIECE_BYTES = 1 << 16  # of who sends much, while others who send little are served
SHARED_SECONDS = 0.05  # after the last of them
UNPARSED_INLINE_MAX = 1 << 15
INTERESTS = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET
ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
READABLE = select.EPOLLIN | ENDED
WRITABLE = select.EPOLLOUT
# Coalescing, docs/decisions/0005-coalescing.md.
STREAK_EVENTS = 128
STREAK_SECONDS = 0.001  # between two turns
STREAK_SPAN_SECONDS = 0.008  # of all of them: 16,000 events a second
CROWD = 96


class Pump(ConnectionOwner):
    """One epoll set and everything in it."""

    def __init__(
        self,
        turns: TurnHandler,
        *,
        coalesce_seconds: float = 0.0,
        read_bytes: int = READ_BYTES,
        epoll: Callable[[], select.epoll] = select.epoll,
    ) -> None:
        """coalesce_seconds: how long to wait for more when many clients send a little each; 0 never
        read_bytes: how much of one connection at most in one turn"""
        self._turns = turns
        self._coalesce_seconds = coalesce_seconds
        self._last_fds = [-1] * (STREAK_EVENTS + EVENTS_MAX)
        self._last_count = 0
        self._crowd = False
        self._last_turn = self._streak_began = 0.0
        self._piece = read_bytes  # how much of one who sends much at most in this turn
        self._began = 0.0  # this turn
        self._shared_until = 0.0  # bulk senders are read in small pieces
        self._is_quiet = False  # True while nothing has arrived in this turn that changes anything
        self._epoll = EpollSet(epoll)
        self.connections = ConnectionTable[Connection]()
        self._by_fd = self.connections.by_fd  # what is ready is found without a hash
        self.pending_logins = PendingLogins(turn_away, lambda: self.turns)
        self._others: dict[int, Callable[[], None]] = {}
        self._again: dict[Connection, None] = {}  # connections that may have more to read than one piece
        self.lingering: LingeringClose | None = None  # None: every socket is closed at once
        self.turns = 0
        self.bytes_in = self.bytes_out = 0  # of clients whose connections have ended
        self.bus_bytes_out = 0  # of links of the bus that have ended
        self.dirty: list[Connection] = []
        self._buffer = bytearray(read_bytes)
        self._view = memoryview(self._buffer)

    # Membership

    def watch(self, fd: int, callback: Callable[[], None], mask: int = select.EPOLLIN) -> None:
        """Call `callback` in each turn in which `fd` is readable, or as `mask` says (level triggered)."""
        self._others[fd] = callback
        self._epoll.register(fd, mask)

    def unwatch(self, fd: int) -> None:
        if self._others.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def add(self, connection: Connection) -> None:
        self.connections.add(connection)
        self._epoll.register(connection.fd, INTERESTS)

    def drop(self, connection: Connection, *, lingers: bool = False) -> None:
        """Close a socket; its handler has ended already. lingers: once the client has read what was sent last"""
        if connection not in self.connections:
            return  # dropped before; its descriptor may already be another's
        unsent = [data for data, _ in connection.unsent()] if lingers else []
        sock = connection.sock
        stream = connection.lingering_stream() if lingers and self.lingering is not None else None
        self.forget(connection)
        connection.unlink()
        if stream is not None and self.lingering is not None:
            self.lingering.add(stream, unsent)
        else:
            hang_up(sock)

    def forget(self, connection: Connection) -> None:
        """Serve a connection no more, without closing its socket."""
        self.connections.remove(connection)
        self.pending_logins.discard(connection)
        if not connection.link.is_bus:
            self.bytes_in += connection.bytes_in
            self.bytes_out += connection.bytes_out
        else:
            self.bus_bytes_out += connection.bytes_out
        connection.closing = True
        connection.queue = None
        connection.unparsed = None
        self._epoll.unregister(connection.fd)
        connection.fd = -1  # the number may soon be another client's

    def resume(self, connection: Connection) -> None:
        """Handle what was read and not parsed, then read on."""
        unparsed = connection.unparsed
        if unparsed is not None:
            connection.unparsed = None
            self._feed(connection, unparsed)
        if not connection.closing:
            self._again[connection] = None

    def feed(self, connection: Connection, data: bytes) -> None:
        """Handle bytes that were read elsewhere, then read on."""
        self._feed(connection, bytearray(data))
        if not connection.closing:
            self._again[connection] = None

    def _feed(self, connection: Connection, data: bytearray) -> None:
        try:
            taken = connection.link.receive(data, 0, len(data))
        except Exception:
            self._crashed(connection)
            return
        if taken < len(data) and not connection.closing:
            connection.unparsed = data[taken:]

    def read_next_turn(self, connection: Connection) -> None:
        """Read from a connection in the next turn, whether its socket is ready or not."""
        self._again[connection] = None

    def read_out(self, connection: Connection) -> None:
        """Read everything that the other end, which has closed, had sent."""
        while not connection.closing:
            before = connection.bytes_in
            self._read(connection)
            if connection.bytes_in == before:
                break

    def lost(self, connection: Connection, why: str) -> None:
        """The network has ended a connection."""
        self._is_quiet = False
        try:
            connection.link.lost(why)
        except Exception:
            self._turns.crashed(connection)
        self.drop(connection)

    def _crashed(self, connection: Connection) -> None:
        """Report the exception that is being handled, and end the connection that it concerns."""
        self._is_quiet = False
        self._turns.crashed(connection)
        self.drop(connection)

    def stop_writing(self, connection: Connection, why: str) -> None:
        """Sending has failed: drop the outbox. What the client sent before, a DISCONNECT perhaps, is read first."""
        connection.write_failed = why
        connection.empty()
        connection.blocked = connection.ended = connection.reading = True
        self._again[connection] = None

    def drained(self, connection: Connection) -> None:
        connection.refused = False
        if not connection.reading:
            connection.reading = True
            self._again[connection] = None
        self._turns.drained(connection)

    def close(self) -> None:
        for connection in list(self.connections.values()):
            self.drop(connection)
        if self.lingering is not None:
            self.lingering.close()
        self._epoll.close()

    # A turn

    def turn(self, timeout: float) -> None:
        """Serve everything that is ready, waiting up to `timeout` seconds for something to be."""
        if self._again:
            timeout = 0.0
        if self._crowd and timeout > self._coalesce_seconds:
            ready = self._epoll.wait(0.0)
            if not ready:
                # A wake-up for each message costs more than the message: wait for a few.
                time.sleep(self._coalesce_seconds)
                ready = self._epoll.wait(timeout)
        else:
            ready = self._epoll.wait(timeout)
        self.turns += 1
        self._is_quiet = True
        self._began = began = self._turns.begin_turn()
        self._piece = PIECE_BYTES if began < self._shared_until else len(self._buffer)
        if self._coalesce_seconds:
            self._remember(ready, began)
        if self._again:
            again, self._again = self._again, {}
            for connection in again:
                if not connection.closing:
                    self._read(connection)
        for at in range(ready):
            fd, mask = self._epoll.fd_at(at), self._epoll.mask_at(at)
            connection = self._by_fd[fd] if fd < len(self._by_fd) else None  # type: ignore[assignment]
            if connection is None:
                callback = self._others.get(fd)
                if callback is not None:
                    self._is_quiet = False
                    try:
                        callback()
                    except Exception:
                        self._turns.failed("watched descriptor")
                continue
            # One piece of a connection a turn, however fast the client sends.
            if mask & ENDED or (mask & READABLE and not (self._again and connection in self._again)):
                if mask & ENDED:
                    connection.ended = True
                self._read(connection)
            if connection.blocked and mask & WRITABLE and not connection.closing:
                self._is_quiet = False
                try:
                    connection.writable()
                except Exception:
                    self._crashed(connection)
        if self._is_quiet:
            self._turns.end_quiet_turn()
        else:
            self._turns.end_turn()
        self._flush()

    def _flush(self) -> None:
        """Send what waits, with what comes up meanwhile."""
        dirty, at = self.dirty, 0
        while at < len(dirty):
            connection = dirty[at]
            at += 1
            try:
                connection.flush()
            except Exception:
                self._crashed(connection)
        dirty.clear()

    def _remember(self, ready: int, now: float) -> None:
        """Detect turns in close succession that each serve a few of many clients.

        A client that waits for each answer must not be slowed."""
        if now - self._last_turn > STREAK_SECONDS:
            self._last_count = 0
            self._crowd = False
        self._last_turn = now
        if not self._last_count:
            self._streak_began = now
        fds, count = self._last_fds, self._last_count
        for at in range(ready):
            fds[count + at] = self._epoll.fd_at(at)
        self._last_count += ready
        if self._last_count >= STREAK_EVENTS:
            is_quick = now - self._streak_began <= STREAK_SPAN_SECONDS
            self._crowd = is_quick and len(set(fds[: self._last_count])) >= CROWD
            self._last_count = 0

    def _read(self, connection: Connection) -> None:
        if connection.closing or connection.reading_paused:
            return
        if connection.room <= -connection.outbox_bytes_max:
            connection.reading = False  # a client that does not read its answers is not read
            return
        unparsed = connection.unparsed
        kept = len(unparsed) if unparsed is not None else 0
        inline = kept <= UNPARSED_INLINE_MAX
        at = kept if inline else 0
        if connection.is_plain:
            room = len(self._buffer) - at
            if connection.is_bulk and room > self._piece:
                room = self._piece
            n = sockets.receive(connection.fd, self._buffer, at, connection.is_bulk, room)
            if n < 0:
                if n != -EAGAIN:
                    self.lost(connection, os.strerror(-n))
                elif connection.write_failed:
                    self.lost(connection, connection.write_failed)
                return
        else:
            room = len(self._buffer) - at
            n = self._read_layers(connection, at)
            if n < 0:
                return
        if n > BULK_BYTES:
            connection.is_bulk = True
        elif connection.is_bulk:
            connection.is_bulk = False
        elif isinstance(connection.link, Receiver) or not connection.link.is_bus:
            # Other shards send a little all the time.
            self._shared_until = self._began + SHARED_SECONDS
        if n == 0:
            self.lost(connection, "closed without DISCONNECT")
            return
        connection.bytes_in += n
        connection.is_quiet = False
        extras = connection.extras
        if extras is not None and extras.tap is not None:
            extras.tap.received(bytes(self._view[at : at + n]))
        try:
            self._receive(connection, unparsed, kept, inline, n)
        except Exception:
            self._crashed(connection)
            return
        if not connection.is_quiet:
            self._is_quiet = False
        if connection.ended or n == room:
            self._again[connection] = None

    def _read_layers(self, connection: Connection, at: int) -> int:
        """Read through TLS, WebSocket and other layers. returns: how many bytes; -1: none, or the connection is over"""
        try:
            return connection.sock.recv_into(self._view[at:] if at else self._buffer)
        except BlockingIOError:
            if connection.write_failed:
                self.lost(connection, connection.write_failed)
        except OSError as fault:
            self.lost(connection, fault.strerror or "connection lost")
        except Exception:
            self._crashed(connection)
        return -1

    def _receive(self, connection: Connection, unparsed: bytearray | None, kept: int, inline: bool, n: int) -> None:
        if unparsed is None:
            link = connection.link
            if isinstance(link, Receiver):
                receiver: Receiver = link
                taken = receiver.receive(self._buffer, 0, n)
            else:
                taken = link.receive(self._buffer, 0, n)
            if taken < n:
                connection.unparsed = bytearray(self._view[taken:n])
        elif inline:
            self._view[:kept] = unparsed
            taken = connection.link.receive(self._buffer, 0, kept + n)
            connection.unparsed = bytearray(self._view[taken : kept + n]) if taken < kept + n else None
        else:
            unparsed += self._view[:n]
            taken = connection.link.receive(unparsed, 0, len(unparsed))
            if taken == len(unparsed):
                connection.unparsed = None
            elif taken:
                connection.unparsed = unparsed[taken:]


def turn_away(connection: Connection, why: str) -> None:
    """End a connection that has not logged in, at the end of the turn."""
    connection.link.turned_away(why)


def hang_up(sock: socket.socket) -> None:
    """Close a socket so that the last packet sent still arrives.

    Closing with bytes unread makes the kernel send a reset, which can overtake a DISCONNECT at the client."""
    try:
        sock.shutdown(socket.SHUT_WR)
        for _ in range(16):
            if not sock.recv(1 << 16):
                break
    except Exception:  # of a layer, too: the socket is closed in any case
        pass
    sock.close()
