"""Links to the followers: dialled, and dialled again with a back-off when one has ended. The view has addresses."""
# compiled: warm

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Greeting, GreetingRefused
from rumq.cluster.replication.messages import ReplicaMessage
from rumq.loop.backoff import Backoff
from rumq.loop.fault_guard import is_told
from rumq.loop.ports import Clock, EventSink, Timers
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.shards.replication.follower_link import OUTBOX_BYTES_MAX, ReplicaLink, ReplicaTransport

BACKOFF_SECONDS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
STEADY_SECONDS = 2.0
LOOK_UP_SECONDS = 0.05
CONNECT_SECONDS_MAX = 2.0
SILENCE_SECONDS_MAX = 5.0  # a link without an answer for so long is closed; a slow disk may delay answers
UNACKNOWLEDGED_MS_MAX = 5_000

MakeLink = Callable[[ReplicaTransport], ReplicaLink]
Connect = Callable[[tuple[str, int], str, MakeLink], None]


class Network(NamedTuple):
    """connect: dials a follower; watch: of the pump, calls when a descriptor is readable"""

    connect: Connect
    watch: Callable[[int, Callable[[], None]], None]


Now = Callable[[], float]


def connector(pump: Pump, tls: NodeTls | None = None) -> Connect:
    """Connects without waiting: what is written meanwhile is sent once the connection is there.

    tls: None for plain bytes between nodes"""

    def connect(address: tuple[str, int], peer: str, link_of: MakeLink) -> None:
        """address: (IP address, port). raises: OSError"""
        sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS_MAX)
            problem = sock.connect_ex(address)
            if problem not in (0, errno.EINPROGRESS):
                raise OSError(problem, os.strerror(problem))
        except OSError:
            sock.close()
            raise
        if tls is not None:
            sock = tls.dialled(pump, sock, f"{address[0]}:{address[1]}", peer)
        connection = Connection(pump, sock, f"replica {peer}", OUTBOX_BYTES_MAX)
        connection.blocked = tls is None  # until it is connected: an edge of writability comes then
        connection.link = link_of(connection)
        pump.add(connection)

    return connect


class LinkedFollower:
    """One that is to be linked with. heard_at, began_at: of its link; is_up: it has answered"""

    def __init__(self) -> None:
        self.link: ReplicaLink | None = None
        self.backoff = Backoff(BACKOFF_SECONDS, STEADY_SECONDS)
        self.began_at = self.heard_at = 0.0
        self.is_up = False
        self.is_due = False  # True while a dial is scheduled


class LinkUser(Protocol):
    """Whom the links serve."""

    def greeting(self, peer: str) -> Greeting:
        """The first message to a peer."""

    def linked(self, peer: str) -> None:
        """A link is on its way, and takes messages."""

    def lost(self, peer: str) -> None: ...
    def received(self, peer: str, message: ReplicaMessage) -> bool:
        """returns: whether it has changed anything"""

    def drained(self, peer: str) -> None:
        """Its outbox has room again."""


class FollowerLinks:
    def __init__(
        self, connect: Connect, timers: Timers, clock: Clock, events: EventSink,
        resolve: Callable[[str], str | None], user: LinkUser,
    ) -> None:  # fmt: skip
        """resolve: the IP address of a host, None while it is looked up"""
        self._connect, self._timers, self._clock, self._events = connect, timers, clock, events
        self._resolve, self._user = resolve, user
        self._followers: dict[str, LinkedFollower] = {}
        self._addresses: dict[str, tuple[str, int]] = {}
        self._is_closed = False

    def link(self, peer: str) -> ReplicaLink | None:
        follower = self._followers.get(peer)
        return follower.link if follower is not None else None

    def seen(self, view: View, shard: int) -> None:
        """Addresses of live nodes; others keep the last one that is known."""
        for node in view.nodes:
            self._addresses[node.id] = (node.host, node.port + 1 + shard)

    def want(self, peers: list[str]) -> None:
        """Link with these and no others."""
        for peer in [peer for peer in self._followers if peer not in peers]:
            gone = self._followers.pop(peer)
            if gone.link is not None:
                gone.link.give_up("it is no member any more")
        for peer in peers:
            if peer not in self._followers:
                self._followers[peer] = LinkedFollower()
                self._dial(peer)

    def _dial(self, peer: str) -> None:
        follower = self._followers.get(peer)
        if follower is None or follower.link is not None or self._is_closed:
            return
        follower.is_due = False
        address = self._addresses.get(peer)
        host = self._resolve(address[0]) if address is not None else None
        if address is None or host is None:
            self._dial_later(peer, LOOK_UP_SECONDS)
            return
        follower.began_at = follower.heard_at = self._clock.monotonic
        try:
            self._connect((host, address[1]), peer, partial(self._made, peer, follower))
        except OSError as fault:
            self._ended(peer, follower, str(fault))

    def _dial_later(self, peer: str, seconds: float) -> None:
        follower = self._followers[peer]
        if not follower.is_due:
            follower.is_due = True
            self._timers.later(seconds, partial(self._dial, peer))

    def _made(self, peer: str, follower: LinkedFollower, transport: ReplicaTransport) -> ReplicaLink:
        link = ReplicaLink(
            transport,
            peer,
            self._take,
            partial(self._link_lost, follower),
            lambda _: self._user.drained(peer),
        )
        follower.link, follower.is_up = link, False
        # Greeting and what the core says are sent once the connection is there.
        self._timers.next_turn(partial(self._greet, link))
        return link

    def _greet(self, link: ReplicaLink) -> None:
        if not link.closed:
            link.say(self._user.greeting(link.peer))
            self._user.linked(link.peer)

    def _take(self, link: ReplicaLink, message: ReplicaMessage) -> bool:
        follower = self._followers.get(link.peer)
        if follower is None or follower.link is not link:
            return True
        if isinstance(message, GreetingRefused):
            link.give_up(message.why)
            return True
        follower.heard_at = self._clock.monotonic
        if not follower.is_up:
            follower.is_up = True
            self._events.tell("cluster.follower_linked", node=link.peer)
        return self._user.received(link.peer, message)

    def _link_lost(self, follower: LinkedFollower, link: ReplicaLink, why: str) -> None:
        follower.link = None
        self._user.lost(link.peer)
        if self._followers.get(link.peer) is follower:
            self._ended(link.peer, follower, why)

    def _ended(self, peer: str, follower: LinkedFollower, why: str) -> None:
        lived = self._clock.monotonic - follower.began_at if follower.is_up else 0.0
        wait = follower.backoff.died(lived)
        if (follower.is_up or is_told(follower.backoff.deaths)) and not self._is_closed:
            self._events.tell("cluster.follower_lost", node=peer, why=why, times=follower.backoff.deaths)
        follower.is_up = False
        self._dial_later(peer, wait)

    def tick(self) -> None:
        """End links that are silent."""
        now = self._clock.monotonic
        for follower in list(self._followers.values()):
            patience = SILENCE_SECONDS_MAX if follower.is_up else CONNECT_SECONDS_MAX
            if follower.link is not None and now - follower.heard_at > patience:
                follower.link.give_up(f"silent for {patience:g} s")

    def close(self) -> None:
        self._is_closed = True
        for follower in self._followers.values():
            if follower.link is not None:
                follower.link.give_up("the leader stops")
