"""Connections that are over for the broker, while their clients read why: a lingering close.

A socket that is closed with bytes unread is reset, and a reset takes the last packet with it: a client that was still
writing would never read its DISCONNECT (MQTT 5.0, 4.13). So the sending side is shut down, what the client sends is
read and dropped, and the socket is closed when the client has closed it, or when it has had its time or its bytes.
RFC 9112, 9.6, does so for HTTP.

They are few: when there are more, the oldest is closed. Each is read a piece a turn. Knows no packet and no link."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rumq.net.socket_stream import SocketStream

if TYPE_CHECKING:
    from rumq.net.pump import Pump

SECONDS_MAX = 2.0
BYTES_MAX = 4 << 20
COUNT_MAX = 256
REST_BYTES_MAX = 1 << 16  # of what a client has not taken yet; who leaves more is not waited for
PIECE_BYTES = 1 << 16


class Lingerer:
    """One of them. read: how many of its bytes were dropped"""

    __slots__ = ("deadline", "fd", "is_shut", "read", "stream")

    def __init__(self, stream: Any, deadline: float) -> None:
        self.stream = stream
        self.fd: int = stream.fileno()
        self.deadline = deadline
        self.is_shut = False
        self.read = 0

    def go_on(self) -> bool:
        """Send what waits, drop a piece of what came; whether there may be more. raises: whatever its layers do"""
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
    """All of one pump."""

    def __init__(
        self,
        pump: Pump,
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
        self._here: dict[Lingerer, None] = {}  # the oldest first
        self._is_timed = False

    def __len__(self) -> int:
        return len(self._here)

    def take(self, sock: Any, rest: list[Any]) -> None:
        """Close a socket, or the stream in its place, when its client has read `rest` and all before it."""
        size = sum(map(len, rest))
        stream = sock if hasattr(sock, "push") else SocketStream(sock)
        lingerer = Lingerer(stream, self._clock() + self._seconds_max)
        try:
            if rest:
                stream.put(rest, size)
            is_open = size <= REST_BYTES_MAX and lingerer.go_on()
        except Exception:
            is_open = False
        if not is_open:
            stream.close()
            return
        while len(self._here) >= self._count_max:
            self.close_oldest()
        self._here[lingerer] = None
        self._watch(lingerer)
        if not self._is_timed:
            self._is_timed = True
            self._later(self._seconds_max, self._look)

    def close_oldest(self) -> None:
        """Make room for a socket."""
        if self._here:
            self._end(next(iter(self._here)))

    def close(self) -> None:
        while self._here:
            self.close_oldest()

    def _watch(self, lingerer: Lingerer) -> None:
        mask = select.EPOLLIN if lingerer.is_shut else select.EPOLLIN | select.EPOLLOUT
        self._pump.watch(lingerer.fd, lambda: self._go_on(lingerer), mask)

    def _go_on(self, lingerer: Lingerer) -> None:
        was_shut = lingerer.is_shut
        try:
            is_open = lingerer.go_on() and lingerer.read < self._bytes_max
        except Exception:
            is_open = False
        if not is_open:
            self._end(lingerer)
        elif lingerer.is_shut != was_shut:
            self._pump.unwatch(lingerer.fd)
            self._watch(lingerer)

    def _end(self, lingerer: Lingerer) -> None:
        if lingerer in self._here:
            del self._here[lingerer]
            self._pump.unwatch(lingerer.fd)
            lingerer.stream.close()

    def _look(self) -> None:
        """Close those whose time is over."""
        now = self._clock()
        while self._here:
            oldest = next(iter(self._here))
            if oldest.deadline > now:
                self._later(oldest.deadline - now, self._look)
                return
            self._end(oldest)
        self._is_timed = False
