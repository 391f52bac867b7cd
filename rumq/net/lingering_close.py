"""A lingering close: sockets that the broker has ended, and whose clients may still read why.

A socket that is closed with bytes unread is reset, and a reset takes the last packet with it: a client that was still
writing would never read its DISCONNECT (MQTT 5.0, 4.13). So the sending side is shut down, what the client sends is
read and dropped, and the socket is closed once the client has closed it, or at a limit of time or bytes. RFC 9112, 9.6,
does so for HTTP. Beyond a number of such sockets the oldest is closed."""
# compiled: warm

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import Protocol

from rumq.net.stream import ReadBuffer, StreamLayer

SECONDS_MAX = 2.0
BYTES_MAX = 4 << 20
COUNT_MAX = 256
UNSENT_BYTES_MAX = 1 << 16  # a client that leaves more unread is not waited for
PIECE_BYTES = 1 << 16


class FdWatcher(Protocol):
    """Calls back when a descriptor is ready: `rumq.net.pump.Pump`."""

    def watch(self, fd: int, callback: Callable[[], None], mask: int = ...) -> None: ...
    def unwatch(self, fd: int) -> None: ...


class LingeringSocket:
    """One such socket. read: how many bytes of its client were dropped"""

    __slots__ = ("deadline", "fd", "is_shut", "read", "stream")

    def __init__(self, stream: StreamLayer, deadline: float) -> None:
        self.stream = stream
        self.fd: int = stream.fileno()
        self.deadline = deadline
        self.is_shut = False
        self.read = 0

    def step(self) -> bool:
        """Send what is left, drop a piece of what came. returns: whether to continue. raises: as its layers do"""
        if not self.is_shut and self.stream.push():
            self.stream.shutdown(socket.SHUT_WR)
            self.is_shut = True
        try:
            data = self.stream.recv(PIECE_BYTES)
        except BlockingIOError:
            return True
        self.read += len(data)
        return bool(data)


class LingeringClose:
    """All lingering sockets of one pump."""

    def __init__(
        self,
        pump: FdWatcher,
        *,
        later: Callable[[float, Callable[[], None]], None],
        seconds_max: float = SECONDS_MAX,
        bytes_max: int = BYTES_MAX,
        count_max: int = COUNT_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """later: calls back after so many seconds; seconds_max, bytes_max: of each; count_max: how many at once"""
        self._pump, self._later, self._clock = pump, later, clock
        self._seconds_max, self._bytes_max, self._count_max = seconds_max, bytes_max, count_max
        self._sockets: dict[LingeringSocket, None] = {}  # the oldest first
        self._is_timed = False

    def __len__(self) -> int:
        return len(self._sockets)

    def add(self, stream: StreamLayer, unsent: list[ReadBuffer]) -> None:
        """Close a stream once its client has read `unsent` and all before it."""
        size = sum(map(len, unsent))
        lingering = LingeringSocket(stream, self._clock() + self._seconds_max)
        try:
            if unsent:
                stream.put(unsent, size)
            is_open = size <= UNSENT_BYTES_MAX and lingering.step()
        except Exception:
            is_open = False
        if not is_open:
            stream.close()
            return
        while len(self._sockets) >= self._count_max:
            self.close_oldest()
        self._sockets[lingering] = None
        self._watch(lingering)
        if not self._is_timed:
            self._is_timed = True
            self._later(self._seconds_max, self._close_expired)

    def close_oldest(self) -> None:
        """Free its descriptor for another connection."""
        if self._sockets:
            self._end(next(iter(self._sockets)))

    def close(self) -> None:
        while self._sockets:
            self.close_oldest()

    def _watch(self, lingering: LingeringSocket) -> None:
        mask = select.EPOLLIN if lingering.is_shut else select.EPOLLIN | select.EPOLLOUT
        self._pump.watch(lingering.fd, lambda: self._step(lingering), mask)

    def _step(self, lingering: LingeringSocket) -> None:
        was_shut = lingering.is_shut
        try:
            is_open = lingering.step() and lingering.read < self._bytes_max
        except Exception:
            is_open = False
        if not is_open:
            self._end(lingering)
        elif lingering.is_shut != was_shut:
            self._pump.unwatch(lingering.fd)
            self._watch(lingering)

    def _end(self, lingering: LingeringSocket) -> None:
        if lingering in self._sockets:
            del self._sockets[lingering]
            self._pump.unwatch(lingering.fd)
            lingering.stream.close()

    def _close_expired(self) -> None:
        now = self._clock()
        while self._sockets:
            oldest = next(iter(self._sockets))
            if oldest.deadline > now:
                self._later(oldest.deadline - now, self._close_expired)
                return
            self._end(oldest)
        self._is_timed = False
