"""Listeners: accept connections from TCP and Unix sockets.

An accept loop survives a client that gives up between SYN and accept, a process without free descriptors (it pauses
instead of spinning), and more clients than are allowed. accept(2)"""
# compiled: warm

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from rumq.auth.connection_rate import ConnectionRate
from rumq.auth.quota_holder import holder_of
from rumq.net.kernels import sockets
from rumq.net.listening.transports import ConnectionSetup
from rumq.session.flow_control.listener_policy import ListenerPolicy

ACCEPTS_A_TURN = 64
SPARE = 16  # connections beyond the limit, before their login: each is refused with a reason, or makes room
PAUSE_SECONDS = 0.25
RELEASE_SECONDS = 0.01  # between two times when those that wait for the rate are served
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
# Errors of the new connection, not of the listener.
OF_THE_CLIENT = {
    errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.ENETDOWN, errno.ENOPROTOOPT, errno.EHOSTDOWN,
    errno.ENONET, errno.EHOSTUNREACH, errno.EOPNOTSUPP, errno.ENETUNREACH, errno.EINTR,
}  # fmt: skip


def open_sockets(host: str, port: int, backlog: int, *, shares: bool = False) -> list[socket.socket]:
    """Listening sockets for every address of `host`; port 0 picks one free port for all of them.

    shares: beside our own sockets that have SO_REUSEPORT for the moment, and are about to be closed"""
    sockets: list[socket.socket] = []
    faults: list[OSError] = []
    for family, kind, protocol, _, address in socket.getaddrinfo(
        None if host == "*" else host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shares:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if port == 0 and sockets:
                address = (address[0], sockets[0].getsockname()[1], *address[2:])
            sock.bind(address)
            sock.listen(backlog)
            sock.setblocking(False)
            if shares:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
        except OSError as fault:
            sock.close()
            faults.append(fault)
        else:
            sockets.append(sock)
    # A machine without IPv6 still resolves localhost to ::1; but a port in use is a fault on any family.
    fatal = [f for f in faults if f.errno in (errno.EADDRINUSE, errno.EACCES)]
    if fatal or not sockets:
        for sock in sockets:
            sock.close()
        raise (fatal or faults)[0]
    return sockets


class NewConnection(NamedTuple):
    """One that waits, for the rate of new connections allows no more. listener: which has accepted it"""

    listener: Acceptor
    sock: socket.socket
    host: str
    port: int

    def refuse(self) -> None:
        """Cheaply: with a reset, so that nothing is left of it here."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def listener_rate(policy: ListenerPolicy, per_second: int, event: Callable[..., None]) -> ConnectionRate[NewConnection]:
    """Of a listener. event: is told when connections are over the rate"""
    counts = policy.arrivals

    def limited(holder: str) -> None:
        event(
            "listener.rate_reached", listener=policy.name, address=holder, per_second=rate.per_second,
            delayed=counts.delayed, refused=counts.refused,
        )  # fmt: skip

    rate = ConnectionRate[NewConnection](per_second, counts, NewConnection.refuse, limited)
    return rate


class Acceptor:
    """Accepts from one listening socket, for one pump.

    `connections_max` counts clients that have logged in; a login beyond it is refused with a reason code. So there are
    SPARE more connections, of pending logins; beyond those a new connection replaces a pending one."""

    def __init__(
        self,
        sock: socket.socket,
        setup: ConnectionSetup,
        *,
        connections_max: int,
        event: Callable[..., None],
        later: Callable[[float, Callable[[], None]], None],
        rate: ConnectionRate[NewConnection] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """setup: makes the connections, with the layers between the socket and MQTT; later: calls back after seconds

        rate: bounds new connections of all sockets of this listener; None: nothing does"""
        self.sock = sock
        self.accepted = 0
        self.turned_away = 0
        self._pump = pump = setup.pump
        self._connections_max = connections_max
        self._limit_reached = f"there are {connections_max} connections"
        self._event = event
        self._later = later
        self._setup = setup
        self._is_tcp = sock.family != socket.AF_UNIX
        if self._is_tcp:  # what is accepted has it, too: tcp(7) of Linux copies the options
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_bare = self._is_tcp and setup.is_bare
        self._rate = rate if self._is_tcp else None  # a Unix socket's clients are let in by its mode
        self._is_releasing = False
        self._clock = clock
        pump.watch(sock.fileno(), self.accept)

    @property
    def address(self) -> tuple[str, int]:
        """(host, port); (path, 0) of a Unix socket."""
        if not self._is_tcp:
            return str(self.sock.getsockname()), 0
        host, port = self.sock.getsockname()[:2]
        return host, port

    def accept(self) -> None:
        """Accept a bounded number, so that other clients have their turn."""
        for _ in range(ACCEPTS_A_TURN):
            pending_logins = self._pump.pending_logins
            if pending_logins and len(self._pump.connections) >= self._connections_max + 2 * SPARE:
                # Those that make room are closed at the end of the turn; a new one has a few turns to log in.
                any(not pending_logins.make_room(self._limit_reached) for _ in range(SPARE))
                return
            fd, host, port = sockets.accept(self.sock.fileno())
            if fd < 0:
                if -fd in OF_THE_CLIENT:
                    continue
                if -fd == errno.EAGAIN:
                    return
                # Mostly a lack of descriptors; no error here may disturb other listeners or clients.
                self._event("listener.accept_failed", why=os.strerror(-fd), retry_seconds=PAUSE_SECONDS)
                self._pump.unwatch(self.sock.fileno())
                self._later(PAUSE_SECONDS, self._resume)
                return
            lingering = self._pump.lingering
            if lingering and len(self._pump.connections) + len(lingering) >= self._connections_max:
                lingering.close_oldest()  # its descriptor is needed
            if len(self._pump.connections) >= self._connections_max + SPARE and not (
                pending_logins.make_room(self._limit_reached) or pending_logins
            ):
                os.close(fd)
                self.turned_away += 1
                if self.turned_away & (self.turned_away - 1) == 0:  # reported at the 1st, 2nd, 4th, 8th
                    self._event("listener.overloaded", connections=self._connections_max, turned_away=self.turned_away)
                continue
            self.accepted += 1
            rate = self._rate
            if rate is None or rate.passes(self._clock()):
                self._serve_safely(fd, host, port)
            else:
                rate.delay(NewConnection(self, self._socket_of(fd), host, port), holder_of(host))
                self._release_later()

    def _release_later(self) -> None:
        """Serve those that wait when the rate allows it."""
        if not self._is_releasing and self._rate:
            self._is_releasing = True
            self._later(max(RELEASE_SECONDS, self._rate.seconds_to_next(self._clock())), self._release)

    def _release(self) -> None:
        self._is_releasing = False
        rate, now = self._rate, self._clock()
        if rate is None:
            return
        for _ in range(ACCEPTS_A_TURN):
            waiting = rate.maybe_next(now)
            if waiting is None:
                break
            waiting.listener._serve_safely(waiting.sock.detach(), waiting.host, waiting.port)
        self._release_later()

    def _serve_safely(self, fd: int, host: str, port: int) -> None:
        """Serve a connection that was accepted."""
        sock = None if self._is_bare else self._socket_of(fd)
        try:
            if sock is None:
                self._setup.accept_bare(fd, f"{host}:{port}")
            elif self._is_tcp:
                self._setup.accept(sock, f"{host}:{port}", host)
            else:
                self._setup.accept(sock, name_of_peer(sock), None)
        except Exception:
            if sock is None:
                os.close(fd)
            else:
                sock.close()  # not its descriptor, which it would close again when that is another's
            self._event("task.failed", task="accept", exc_info=True)

    def _socket_of(self, fd: int) -> socket.socket:
        """The object of a descriptor, which owns it."""
        return socket.socket(self.sock.family, socket.SOCK_STREAM, 0, fd)

    def _resume(self) -> None:
        if self.sock.fileno() >= 0:
            self._pump.watch(self.sock.fileno(), self.accept)

    def close(self) -> None:
        if self.sock.fileno() >= 0:
            self._pump.unwatch(self.sock.fileno())
            self.sock.close()
            for waiting in self._rate.take_all() if self._rate is not None else ():
                waiting.sock.close()


def name_of_peer(sock: socket.socket) -> str:
    """The process at the other end of a Unix socket, as "unix:4711". unix(7), SO_PEERCRED"""
    found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return f"unix:{struct.unpack('3i', found)[0]}"
