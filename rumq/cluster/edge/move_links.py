"""The links of an edge to the leaders that it relays clients to: they say when a client is to go to another leader.

One link for each leader, while clients are relayed to it. `rumq.cluster.links.client_moves`"""

from __future__ import annotations

import os
import socket
from collections import Counter
from functools import partial

from rumq.cluster.connections.dial import Dial, DialOpening, DialUser, NodeDialer
from rumq.cluster.connections.move_handler import MoveHandler
from rumq.cluster.control.leaders import LeaderAddress
from rumq.cluster.edge.movable_relay import MovableClientEnd
from rumq.cluster.links.client_moves import EdgeMessage, Held, Hold, Leave, Moved, ResumeRelays
from rumq.cluster.links.greeting import Greeting
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.session.moves.moved_client import decode_moved

OUTBOX_BYTES_MAX = 1 << 20
Key = tuple[int, int]  # shard and epoch


class MoveLinks:
    """edge: of this process, unique; ends: of the clients that are relayed, by number"""

    def __init__(self, pump: Pump, dialer: NodeDialer) -> None:
        self._pump, self._dialer = pump, dialer
        self.edge = os.urandom(8).hex()
        self.ends: dict[int, MovableClientEnd] = {}
        self._keys: dict[int, Key] = {}
        self._counts: Counter[Key] = Counter()  # relays, by leader
        self._links: dict[Key, MoveHandler | Dial | None] = {}
        self._count = 0

    def new_number(self) -> int:
        self._count += 1
        return self._count

    def add(self, number: int, end: MovableClientEnd, key: Key) -> None:
        self.ends[number], self._keys[number] = end, key
        self._counts[key] += 1

    def discard(self, number: int) -> None:
        """The relay has ended. The link goes with the last one: until then it may tell of the others."""
        del self.ends[number]
        key = self._keys.pop(number)
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
            link = self._links.pop(key, None)
            if link is not None:
                link.end()

    def want(self, cluster: str, node: str, leader: LeaderAddress, address: str) -> None:
        """Have a link to this leader, if it takes one: it may be of a version that moves no clients."""
        key = (leader.shard, leader.epoch)
        if key in self._links:
            return
        greeting = Greeting("edge", cluster, node, leader.shard, leader.epoch, edge=self.edge)
        self._links[key] = None

        def make(sock: socket.socket) -> Connection:
            return Connection(self._pump, sock, leader.node, OUTBOX_BYTES_MAX)

        try:
            made = self._dialer.dial(
                (address, leader.port), leader.node, DialOpening(greeting),
                DialUser(make, partial(self._open, key), lambda why: self._failed(key)),
            )  # fmt: skip
        except OSError:
            self._failed(key)
            return
        if key in self._links and self._links[key] is None:
            self._links[key] = made

    def _failed(self, key: Key) -> None:
        """The next client that is relayed there tries again."""
        self._links.pop(key, None)

    def leave(self, reference: str) -> None:
        """This edge is stopping: have the leaders end its clients."""
        for link in self._links.values():
            if isinstance(link, MoveHandler):
                link.say(Leave(reference))

    def _open(self, key: Key, connection: Connection, rest: bytes) -> None:
        if key not in self._links:
            connection.close()
            return
        handler = MoveHandler(
            connection, lambda message, raw: self._heard(handler, message, raw), lambda: self._lost(key)
        )
        connection.link = handler
        self._links[key] = handler
        if rest:
            self._pump.feed(connection, rest)

    def _heard(self, handler: MoveHandler, message: EdgeMessage, raw: bytes) -> None:
        if isinstance(message, Hold):
            sent = {}
            for number in message.relays:
                end = self.ends.get(number)
                if end is not None and not end.closed:
                    end.hold()
                    sent[number] = end.sent
            handler.say(Held(sent))
        elif isinstance(message, ResumeRelays):
            for number in message.relays:
                if number in self.ends:
                    self.ends[number].go_on()
        elif isinstance(message, Moved) and message.relay in self.ends:
            self.ends[message.relay].move(decode_moved(raw), message.sent)

    def _lost(self, key: Key) -> None:
        """Its leader is gone, or only the link: then the clients go on."""
        for number, end in list(self.ends.items()):
            if self._keys[number] == key:
                end.go_on()
