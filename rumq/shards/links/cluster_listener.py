"""Accepts connections of other nodes in a leader, and gives each to whom its greeting names.

The listening socket is bound by the supervisor and outlives the leader. A connection that does not greet within
GREETING_SECONDS_MAX of its open transport, for another cluster or shard, or as another node than its certificate's, is
refused; a stranger is not told why. Of those that have not greeted the address with the most makes room.
`rumq.cluster.links.greeting`, `rumq.cluster.links.greeting_queue`"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from rumq.auth.quota_holder import holder_of
from rumq.cluster.connections.dial import tune
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.links.greeting import FEATURE_LEVEL, TO_A_STRANGER, Greeting, GreetingRefused, Taken
from rumq.cluster.links.greeting_queue import (
    GREETING_BYTES_MAX,
    GREETING_SECONDS_MAX,
    GREETINGS_MAX,
    GreetingQueue,
)
from rumq.loop.ports import EventSink, Timers
from rumq.net.connection import Connection
from rumq.net.frames import encoded, maybe_first
from rumq.net.listening.listener import EXHAUSTED, OF_THE_CLIENT
from rumq.net.pump import Pump
from rumq.net.transport.stream_connection import StreamConnection
from rumq.net.transport.transport_handshake import TransportHandshakes

ACCEPTS_A_TURN = 64
NODE_CHARS_MAX = 200  # of what a stranger calls itself, in the log
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
            self.sock.send(encoded(GreetingRefused(why)))
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self.sock.close()


Taker = Callable[[Caller], None]


class Expected(NamedTuple):
    """What a greeting must say. epochs: of this leader, from the one in which it took office to the running one"""

    cluster: str
    shard: int
    epochs: Callable[[], range]

    def maybe_stranger(self, greeting: Greeting) -> str | None:
        """Why a greeting is that of a stranger, who is not told; None if it is not."""
        if greeting.cluster != self.cluster:
            return f"this is cluster {self.cluster}, not {greeting.cluster[:NODE_CHARS_MAX]}"
        return None

    def maybe_problem(self, greeting: Greeting) -> str | None:
        """Why a node of this cluster is refused; None if it is not."""
        if greeting.shard != self.shard:
            return f"this is shard {self.shard}, not {greeting.shard}"
        if greeting.level != FEATURE_LEVEL:
            return f"this node speaks feature level {FEATURE_LEVEL}, not {greeting.level}"
        if greeting.kind == "client" and greeting.epoch not in (epochs := self.epochs()):
            # Also an older one: an edge that has not heard of this leader would leave it when it does.
            return f"this leader's epoch is {epochs[-1]}, not {greeting.epoch}"
        return None


class Stranger(Protocol):
    """A connection that has not greeted yet."""

    def __hash__(self) -> int: ...
    def make_room(self, why: str) -> None:
        """Close it for another one."""


class TlsHandshake:
    """A connection whose TLS is not open yet; its deadline is that of `TransportHandshakes`, which tells of its end."""

    __slots__ = ("_connection",)

    def __init__(self, connection: StreamConnection) -> None:
        self._connection = connection

    def make_room(self, why: str) -> None:
        if self._connection.handshake is not None:
            self._connection.handshake.end(with_will=False)


class ClusterListener:
    """takers: by kind of greeting; each owns the connection that it is given"""

    def __init__(
        self, sock: socket.socket, pump: Pump, expected: Expected, takers: Mapping[str, Taker], timers: Timers,
        events: EventSink, tls: NodeTls | None = None, greetings_max: int = GREETINGS_MAX,
    ) -> None:  # fmt: skip
        """tls: None for plain bytes between nodes; greetings_max: connections at once that have not greeted"""
        self._tls = tls
        self._handshakes = TransportHandshakes(
            pump, later=timers.later, event=events.tell, seconds_max=GREETING_SECONDS_MAX
        )
        self._sock, self._pump, self._expected, self._takers = sock, pump, expected, takers
        self._timers, self._events = timers, events
        self._strangers: GreetingQueue[Stranger] = GreetingQueue(greetings_max)
        sock.setblocking(False)
        pump.watch(sock.fileno(), self.accept)

    def __len__(self) -> int:
        """How many have not greeted yet."""
        return len(self._strangers)

    def accept(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as fault:
                if fault.errno in OF_THE_CLIENT:
                    continue
                if fault.errno in EXHAUSTED and (loser := self._strangers.drop()) is not None:
                    loser.make_room("its descriptor was needed")
                    continue
                self._events.tell("listener.accept_failed", why=fault.strerror, retry_seconds=PAUSE_SECONDS)
                self._pump.unwatch(self._sock.fileno())
                self._timers.later(PAUSE_SECONDS, self._resume)
                return
            sock.setblocking(False)
            tune(sock)
            peer = f"{address[0]}:{address[1]}"
            if self._tls is None:
                self._expect(sock, peer, ())
            else:
                self._secure(self._tls, sock, peer)

    def _resume(self) -> None:
        if self._sock.fileno() >= 0:
            self._pump.watch(self._sock.fileno(), self.accept)

    def _secure(self, tls: NodeTls, sock: socket.socket, peer: str) -> None:
        """Have TLS opened, and then a greeting expected."""

        def opened(connection: StreamConnection, plain: socket.socket, uris: tuple[str, ...]) -> None:
            self._strangers.discard(waiting)
            self._expect(plain, peer, uris)

        waiting = TlsHandshake(tls.accepted(self._pump, self._handshakes, sock, peer, opened))
        self._add(waiting, peer)
        self._timers.later(GREETING_SECONDS_MAX, lambda: self._strangers.discard(waiting))

    def _expect(self, sock: socket.socket, peer: str, uris: tuple[str, ...]) -> None:
        connection = Connection(self._pump, sock, peer, GREETING_BYTES_MAX)
        handler = connection.link = GreetingHandler(self, connection, uris)
        self._add(handler, peer)
        self._timers.later(GREETING_SECONDS_MAX, handler.expire)
        self._pump.add(connection)

    def _add(self, stranger: Stranger, peer: str) -> None:
        loser = self._strangers.add(stranger, holder_of(peer.rpartition(":")[0]))
        if loser is not None:
            loser.make_room("too many connections have not greeted")

    def greeted(self, handler: GreetingHandler, greeting: Greeting, raw: bytes, rest: bytes) -> None:
        """Give a connection to its taker, or refuse it."""
        self.forget(handler)
        connection = handler.transport
        self._pump.forget(connection)
        caller = Caller(greeting, connection.sock, raw, rest)
        strange = self._expected.maybe_stranger(greeting)
        if strange is None and self._tls is not None:
            strange = self._tls.names.maybe_problem(handler.uris, greeting.node)
        if strange is not None:
            self.refused(connection.peer, f"{greeting.node[:NODE_CHARS_MAX]}: {strange}")
            caller.refuse(TO_A_STRANGER)
            return
        taker = self._takers.get(greeting.kind)
        problem = self._expected.maybe_problem(greeting)
        if problem is None and taker is None:
            problem = f"nothing here takes a connection of the kind {greeting.kind[:NODE_CHARS_MAX]}"
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

    def waits(self, handler: GreetingHandler, size: int) -> None:
        """So many bytes of a greeting are here, and not all."""
        while self._strangers.hold(handler, size) and (loser := self._strangers.drop()) is not None:
            loser.make_room("too many bytes of greetings wait")

    def forget(self, handler: GreetingHandler) -> None:
        self._strangers.discard(handler)

    def close(self) -> None:
        """Accept nothing more. The socket stays: the next leader here accepts from it."""
        self._pump.unwatch(self._sock.fileno())


class GreetingHandler:
    """The handler of a connection until its greeting is here."""

    is_bus = True
    client_id = None
    attempt = 1

    __slots__ = ("_listener", "closed", "transport", "uris")

    def __init__(self, listener: ClusterListener, transport: Connection, uris: tuple[str, ...]) -> None:
        """uris: of its certificate"""
        self._listener = listener
        self.transport, self.uris = transport, uris
        self.closed = False

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        try:
            first = maybe_first(GREETINGS, memoryview(data)[pos:end], GREETING_BYTES_MAX)
        except ValueError as fault:
            self._end(str(fault))
            return end
        if first is None:
            self._listener.waits(self, end - pos)
            return pos
        greeting, raw, size = first
        self.closed = True
        self._listener.greeted(self, greeting, raw, bytes(data[pos + size : end]))
        return end

    def expire(self) -> None:
        if not self.closed:
            self._end(f"no greeting within {GREETING_SECONDS_MAX:g} s")

    def make_room(self, why: str) -> None:
        self._end(why)

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
