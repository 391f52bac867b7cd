"""Accepts connections of other nodes in a leader, and gives each to whom its greeting names.

The listening socket is bound by the supervisor and outlives the leader. A connection that does not greet within
GREETING_SECONDS_MAX, or for another cluster or shard, is refused. Who may connect at all is a matter of the network, or
of mutual TLS. `rumq.cluster.links.greeting`"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from rumq.cluster.connections.dial import tune
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.links.frames import encoded, maybe_first
from rumq.cluster.links.greeting import FEATURE_LEVEL, Greeting, Refused, Taken
from rumq.net.connection import Connection
from rumq.net.listener import OF_THE_CLIENT
from rumq.net.pump import Pump
from rumq.net.transport_handshake import TransportHandshakes
from rumq.shards.turn.ports import EventSink, Timers

ACCEPTS_A_TURN = 64
GREETING_SECONDS_MAX = 5.0
GREETING_BYTES_MAX = 1 << 16
GREETINGS_MAX = 1024  # connections at once that have not greeted
PAUSE_SECONDS = 0.25  # after accept(2) has failed

GREETINGS: msgspec.msgpack.Decoder[Greeting] = msgspec.msgpack.Decoder(Greeting)


class Caller(NamedTuple):
    """A connection that has greeted. raw: behind the greeting in its frame; rest: bytes that came behind the frame"""

    greeting: Greeting
    sock: socket.socket
    raw: bytes
    rest: bytes

    def answer_taken(self, epoch: int = 0) -> None:
        """Before any other byte, so the socket has room for it. epoch: of this leader"""
        try:
            self.sock.send(encoded(Taken(epoch)))
        except OSError:
            pass  # it is gone, which whoever serves it finds

    def refuse(self, why: str) -> None:
        """Say why, and close."""
        try:
            self.sock.send(encoded(Refused(why)))
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self.sock.close()


Taker = Callable[[Caller], None]


class Expected(NamedTuple):
    """What a greeting must say. epoch: of this leader"""

    cluster: str
    shard: int
    epoch: int

    def maybe_problem(self, greeting: Greeting) -> str | None:
        """Why a connection is refused; None if it is not."""
        if greeting.cluster != self.cluster:
            return f"this is cluster {self.cluster}, not {greeting.cluster}"
        if greeting.shard != self.shard:
            return f"this is shard {self.shard}, not {greeting.shard}"
        if greeting.level != FEATURE_LEVEL:
            return f"this node speaks feature level {FEATURE_LEVEL}, not {greeting.level}"
        if greeting.kind == "client" and greeting.epoch != self.epoch:
            # Also an older one: an edge that has not heard of this leader would leave it when it does.
            return f"this leader's epoch is {self.epoch}, not {greeting.epoch}"
        return None


class ClusterListener:
    """takers: by kind of greeting; each owns the connection that it is given"""

    def __init__(
        self, sock: socket.socket, pump: Pump, expected: Expected, takers: Mapping[str, Taker], timers: Timers,
        events: EventSink, tls: NodeTls | None = None,
    ) -> None:  # fmt: skip
        """tls: None for plain bytes between nodes"""
        self._tls = tls
        self._handshakes = TransportHandshakes(pump, later=timers.later, event=events.tell)
        self._sock, self._pump, self._expected, self._takers = sock, pump, expected, takers
        self._timers, self._events = timers, events
        self._greeting: dict[GreetingHandler, None] = {}  # the earliest first
        sock.setblocking(False)
        pump.watch(sock.fileno(), self.accept)

    def __len__(self) -> int:
        """How many have not greeted yet."""
        return len(self._greeting)

    def accept(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as fault:
                if fault.errno in OF_THE_CLIENT:
                    continue
                self._events.tell("listener.accept_failed", why=fault.strerror, retry_seconds=PAUSE_SECONDS)
                self._pump.unwatch(self._sock.fileno())
                self._timers.later(PAUSE_SECONDS, self._resume)
                return
            sock.setblocking(False)
            tune(sock)
            peer = f"{address[0]}:{address[1]}"
            if self._tls is None:
                self._expect(sock, peer)
            else:
                self._tls.accepted(self._pump, self._handshakes, sock, peer, self._expect)

    def _resume(self) -> None:
        if self._sock.fileno() >= 0:
            self._pump.watch(self._sock.fileno(), self.accept)

    def _expect(self, sock: socket.socket, peer: str) -> None:
        connection = Connection(self._pump, sock, peer, GREETING_BYTES_MAX)
        handler = connection.link = GreetingHandler(self, connection)
        self._greeting[handler] = None
        if len(self._greeting) > GREETINGS_MAX:
            next(iter(self._greeting)).expire()
        self._timers.later(GREETING_SECONDS_MAX, handler.expire)
        self._pump.add(connection)

    def greeted(self, handler: GreetingHandler, greeting: Greeting, raw: bytes, rest: bytes) -> None:
        """Give a connection to its taker, or refuse it."""
        self.forget(handler)
        connection = handler.transport
        self._pump.forget(connection)
        caller = Caller(greeting, connection.sock, raw, rest)
        taker = self._takers.get(greeting.kind)
        problem = self._expected.maybe_problem(greeting)
        if problem is None and taker is None:
            problem = f"nothing here takes a connection of the kind {greeting.kind}"
        if problem is not None:
            self.refused(connection.peer, problem)
            caller.refuse(problem)
            return
        assert taker is not None
        try:
            taker(caller)
        except Exception:
            self._events.tell("task.failed", task="connection of another node", exc_info=True)
            caller.sock.close()

    def refused(self, peer: str, why: str) -> None:
        self._events.tell("connection.refused", peer=peer, transport="cluster", why=why)

    def forget(self, handler: GreetingHandler) -> None:
        self._greeting.pop(handler, None)

    def close(self) -> None:
        """Accept nothing more. The socket stays: the next leader here accepts from it."""
        self._pump.unwatch(self._sock.fileno())


class GreetingHandler:
    """The handler of a connection until its greeting is here."""

    is_bus = True
    client_id = None
    attempt = 1

    __slots__ = ("_listener", "closed", "transport")

    def __init__(self, listener: ClusterListener, transport: Connection) -> None:
        self._listener = listener
        self.transport = transport
        self.closed = False

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        try:
            first = maybe_first(GREETINGS, memoryview(data)[pos:end], GREETING_BYTES_MAX)
        except ValueError as fault:
            self._end(str(fault))
            return end
        if first is None:
            return pos
        greeting, raw, size = first
        self.closed = True
        self._listener.greeted(self, greeting, raw, bytes(data[pos + size : end]))
        return end

    def expire(self) -> None:
        if not self.closed:
            self._end(f"no greeting within {GREETING_SECONDS_MAX:g} s")

    def _end(self, why: str) -> None:
        self._listener.refused(self.transport.peer, why)
        self.end()

    def drained(self) -> None: ...

    def lost(self, why: str) -> None:
        self.closed = True
        self._listener.forget(self)

    def turned_away(self, why: str) -> None:
        self.end()

    def dismiss(self, reason: object, why: str | None = None) -> None: ...

    def end(self, *, with_will: bool = False) -> None:
        self.lost("given up")
        self.transport.close()
