"""Which connections of a leader are relays of other nodes' edges, and the links to these edges.

Before a relayed client can go to another leader, its edge must stop sending, and all that it had sent must be here.
`rumq.cluster.links.client_moves`"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rumq.cluster.connections.move_handler import MoveHandler
from rumq.cluster.links.client_moves import EdgeMessage, Held, Hold, Leave, Moved, ResumeRelays
from rumq.mqtt.reasons import Reason
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.session.protocol.connected import Connected
from rumq.shards.links.cluster_listener import Caller

OUTBOX_BYTES_MAX = 1 << 20
READ_BYTES = 1 << 16


@dataclass(slots=True, eq=False)
class Relayed:
    """inode: the kernel's number of its socket, which no later one with the same descriptor has
    edge, number: of the relay, edge "" if it moves no clients; before: bytes that came with the greeting

    sent: bytes that the edge has sent in all, once it holds the client; -1 before"""

    inode: int
    edge: str
    number: int
    before: int
    sent: int = -1


class RelayedClients:
    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._relayed: dict[int, Relayed] = {}  # by descriptor, which may be another connection's by now
        # By edge, the newest last: one for each epoch of this leader in which clients came through it.
        self._links: dict[str, list[MoveHandler]] = {}

    # Who comes

    def note(self, caller: Caller) -> None:
        """A relayed client has come."""
        greeting = caller.greeting
        fd = caller.sock.fileno()  # the object may soon stand for nothing: `Connection.keep_descriptor`
        self._relayed[fd] = Relayed(os.fstat(fd).st_ino, greeting.edge, greeting.relay, len(caller.rest))

    def take(self, caller: Caller) -> None:
        """An edge has come, to be told of moves."""
        caller.answer_taken()
        edge = caller.greeting.edge
        connection = Connection(self._pump, caller.sock, f"edge of {caller.greeting.node}", OUTBOX_BYTES_MAX)
        handler = MoveHandler(
            connection, lambda message, raw: self._heard(edge, message), lambda: self._lost(handler, edge)
        )
        connection.link = handler
        self._links.setdefault(edge, []).append(handler)
        self._pump.add(connection)
        if caller.rest:
            self._pump.feed(connection, caller.rest)

    def _lost(self, handler: MoveHandler, edge: str) -> None:
        links = self._links.get(edge, [])
        if handler in links:
            links.remove(handler)
        if not links:
            self._links.pop(edge, None)

    def maybe_relayed(self, connection: Connection) -> Relayed | None:
        """None: it is no relay of another node."""
        found = self._relayed.get(connection.fd)
        return found if found is not None and found.inode == os.fstat(connection.fd).st_ino else None

    # A move

    def can_hold(self, relayed: Relayed) -> bool:
        return relayed.edge in self._links

    def hold(self, some: Iterable[Relayed]) -> None:
        """Have the edges send nothing more of these clients."""
        for edge, numbers in by_edge(some).items():
            if edge in self._links:
                self._links[edge][-1].say(Hold(numbers))

    def resume(self, some: Iterable[Relayed]) -> None:
        some = list(some)
        for relayed in some:
            relayed.sent = -1
        for edge, numbers in by_edge(some).items():
            if edge in self._links:
                self._links[edge][-1].say(ResumeRelays(numbers))

    def has_all(self, relayed: Relayed, connection: Connection, counted: int) -> bool:
        """Whether all that the edge had sent is here; what its socket has is taken, and handled by nobody.

        counted: bytes that came and are no longer in `connection.bytes_in`"""
        if relayed.sent < 0:
            return False
        while (missing := relayed.sent - relayed.before - counted - connection.bytes_in) > 0:
            try:
                data = connection.sock.recv(min(missing, READ_BYTES))
            except OSError:  # not here yet, or lost, which is found later
                return False
            if not data:
                return False
            connection.unparsed = bytearray(connection.unparsed or b"") + data
            connection.bytes_in += len(data)
        return True

    def move(self, relayed: Relayed, sent: int, state: bytes) -> None:
        """Give a client's state to its edge. sent: bytes for the client, in all"""
        self._links[relayed.edge][-1].say(Moved(relayed.number, sent), state)

    def flush(self) -> None:
        for handler in self._handlers():
            handler.transport.flush()

    def waits(self) -> bool:
        """Whether something is still to be sent to an edge."""
        return any(handler.transport.waits() for handler in self._handlers())

    def _handlers(self) -> Iterator[MoveHandler]:
        return (each for links in self._links.values() for each in links)

    def _heard(self, edge: str, message: EdgeMessage) -> None:
        if isinstance(message, Held):
            for relayed in self._relayed.values():
                if relayed.edge == edge and relayed.number in message.sent:
                    relayed.sent = message.sent[relayed.number]
        elif isinstance(message, Leave):
            for connection in list(self._pump.connections.values()):
                relay = self.maybe_relayed(connection)
                if relay is not None and relay.edge == edge and isinstance(connection.link, Connected):
                    connection.link.dismiss(
                        Reason.USE_ANOTHER_SERVER, "the node that it is connected to is stopping",
                        message.reference,
                    )  # fmt: skip


def by_edge(some: Iterable[Relayed]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for relayed in some:
        found.setdefault(relayed.edge, []).append(relayed.number)
    return found
