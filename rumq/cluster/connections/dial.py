"""A connection to another node on its way: connecting, greeting sent, answer awaited. It blocks nowhere.

Once it is taken, what follows is the caller's: bytes of MQTT or of the bus. tcp(7)"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.links.greeting import Answer, Greeting, GreetingRefused
from rumq.net.connection import Connection
from rumq.net.frames import encoded, maybe_first
from rumq.net.pump import Pump

DIAL_SECONDS_MAX = 2.0  # from connect(2) to the answer
ANSWER_BYTES_MAX = 1 << 12
UNANSWERED_SECONDS_MAX = 10.0  # bytes that a node does not acknowledge: it is gone
IDLE_PROBE_SECONDS = 5
TCP_SYN_SENT = 2  # tcp(7), `struct tcp_info`

ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
Later = Callable[[float, Callable[[], None]], None]


class Dial:
    """The handler of a connection that is on its way.

    taken: called with the connection and the bytes behind the answer; failed: with the reason, once the socket is
    closed. One of them is called, unless `give_up` was"""

    is_bus = True
    client_id = None
    attempt = 1

    __slots__ = ("_failed", "_sock", "_taken", "closed", "epoch", "transport")

    def __init__(
        self,
        transport: Connection,
        taken: Callable[[Connection, bytes], None],
        failed: Callable[[str], None],
        sock: socket.socket,
    ) -> None:
        """sock: the TCP socket, below TLS"""
        self.transport, self._sock = transport, sock
        self._taken, self._failed = taken, failed
        self.closed = False  # True once the dial was answered or given up
        self.epoch = 0  # epoch of the leader that has taken it

    @property
    def is_connecting(self) -> bool:
        """Whether the other node's kernel has not answered yet."""
        try:
            return self._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_SYN_SENT
        except OSError:
            return False  # it has ended

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        try:
            first = maybe_first(ANSWERS, memoryview(data)[pos:end], ANSWER_BYTES_MAX)
        except ValueError as fault:
            self._end(str(fault))
            return end
        if first is None:
            return pos
        answer, _, size = first
        if isinstance(answer, GreetingRefused):
            self._end(answer.why)
        elif not self.closed:
            self.closed = True
            self.epoch = answer.epoch
            self._taken(self.transport, bytes(data[pos + size : end]))
        return end

    def _end(self, why: str) -> None:
        if not self.closed:
            self.give_up()
            self._failed(why)

    def give_up(self) -> None:
        """Close the connection."""
        self.closed = True
        self.transport.close()

    def expire(self) -> None:
        self._end(f"no answer within {DIAL_SECONDS_MAX:g} s")

    def drained(self) -> None: ...

    def lost(self, why: str) -> None:
        if not self.closed:
            self.closed = True
            self._failed(why)

    def turned_away(self, why: str) -> None:
        self._end(why)

    def dismiss(self, reason: object, why: str | None = None) -> None: ...

    def end(self, *, with_will: bool = False) -> None:
        self._end("given up")


class DialOpening(NamedTuple):
    """What is sent first. raw, behind: bytes in and behind the greeting"""

    greeting: Greeting
    raw: bytes = b""
    behind: bytes = b""


class DialUser(NamedTuple):
    """make: makes the connection over a socket; taken, failed: as of `Dial`"""

    make: Callable[[socket.socket], Connection]
    taken: Callable[[Connection, bytes], None]
    failed: Callable[[str], None]


class SocketOptions(NamedTuple):
    """send_bytes: of the socket's buffer, 0 for the system's
    unanswered_seconds: after which bytes that are not acknowledged end the connection"""

    send_bytes: int = 0
    unanswered_seconds: float = UNANSWERED_SECONDS_MAX


USUAL = SocketOptions()


class NodeDialer:
    """How this process connects to other nodes. tls: None for plain bytes"""

    def __init__(self, pump: Callable[[], Pump], later: Later, tls: NodeTls | None = None) -> None:
        self._pump, self._later, self._tls = pump, later, tls

    def dial(
        self, address: tuple[str, int], node: str, opening: DialOpening, user: DialUser,
        options: SocketOptions = USUAL,
    ) -> Dial:  # fmt: skip
        """Connect to a shard of another node. address: (IP address, port); node: id of the one that is there

        raises: OSError if it cannot even be tried"""
        pump = self._pump()
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            tune(sock, *options)
            problem = sock.connect_ex(address)
            if problem not in (0, errno.EINPROGRESS):
                raise OSError(problem, os.strerror(problem))
        except OSError:
            sock.close()
            raise
        tcp = sock
        if self._tls is not None:
            sock = self._tls.dialled(pump, sock, f"{address[0]}:{address[1]}", node)
        connection = user.make(sock)
        connection.blocked = self._tls is None  # until it is connected: an edge of writability comes then
        handler = Dial(connection, user.taken, user.failed, tcp)
        connection.link = handler
        pump.add(connection)
        connection.write(encoded(opening.greeting, [opening.raw]))
        if opening.behind:
            connection.write(opening.behind)
        self._later(DIAL_SECONDS_MAX, handler.expire)
        return handler


def tune(sock: socket.socket, send_bytes: int = 0, unanswered_seconds: float = UNANSWERED_SECONDS_MAX) -> None:
    """Options of a connection between nodes: small packets leave at once, and a node that is gone is noticed."""
    tcp = socket.IPPROTO_TCP
    sock.setsockopt(tcp, socket.TCP_NODELAY, 1)
    sock.setsockopt(tcp, socket.TCP_USER_TIMEOUT, int(unanswered_seconds * 1000))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(tcp, socket.TCP_KEEPIDLE, IDLE_PROBE_SECONDS)
    sock.setsockopt(tcp, socket.TCP_KEEPINTVL, IDLE_PROBE_SECONDS)
    if send_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
