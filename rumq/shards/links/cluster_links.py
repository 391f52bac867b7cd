"""Links of the bus between leaders, which may be on any node: a TCP connection for each two shards.

Where the link between two nodes is cut, theirs goes by way of a third one: `rumq.cluster.connections.detour`.

A link belongs to a leader of the other shard. When the view names another node, the link to the old one is ended, and
one from a leader of an older epoch is refused. A leader that changes its members keeps its links in the next epoch."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial

from rumq.cluster.connections.detour import Attempt, Ways
from rumq.cluster.connections.dial import DialOpening, DialUser, NodeDialer, SocketOptions
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.control.leaders import LeaderAddress, epoch_of, is_replaced, leader_of, maybe_leader
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Greeting
from rumq.loop.ports import EventSink, Timers
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.net.sockets.fd_passing import STREAM_BYTES
from rumq.shards.bus.dialers import LinkTaker
from rumq.shards.links.cluster_listener import Caller

RETRY_SECONDS = 0.1
CUT_SECONDS = 1.5  # without an acknowledgement of its kernel, the other node is beyond a cut
DIRECT_AGAIN_SECONDS = 5.0  # until a link that goes by another node is made directly, if that works again
OUTBOX_BYTES_MAX = 1 << 16  # that may wait until the other node has taken the link


class ClusterLinks:
    """The `Dialer` of a leader. index: of its shard; epoch: in which it leads it, now"""

    def __init__(
        self, index: int, epoch: Callable[[], int], addresses: HostAddresses, pump: Callable[[], Pump], timers: Timers,
        events: EventSink, tls: NodeTls | None = None,
    ) -> None:  # fmt: skip
        """tls: None for plain bytes between nodes"""
        self.ways = Ways(addresses, NodeDialer(pump, timers.later, tls), timers.later)
        self._index, self._epoch = index, epoch
        self._pump, self._timers, self._events = pump, timers, events
        self._attach: LinkTaker
        self._end: Callable[[int], None]
        self._view: View | None = None
        self._linked: dict[int, tuple[int, str]] = {}  # by shard, epoch and node of the leader that was linked last
        self._wanted: set[int] = set()  # shards that are to be dialled
        self._dials: dict[int, tuple[LeaderAddress, Attempt]] = {}
        self._is_waiting = False
        self._detoured: dict[int, Attempt] = {}  # by shard, of links that go by another node

    def begin(self, attach: LinkTaker, end: Callable[[int], None]) -> None:
        self._attach, self._end = attach, end

    @property
    def view(self) -> View | None:
        """The last one."""
        return self._view

    def dial(self, shard: int) -> None:
        self._wanted.add(shard)
        self._try(shard)

    def view_changed(self, view: View) -> None:
        """Leave those that lead no more, and dial their successors."""
        self._view = view
        for shard, (epoch, node) in list(self._linked.items()):
            if epoch_of(view, shard) > epoch and leader_of(view, shard) != node:
                del self._linked[shard]
                self._end(shard)
        for shard, (leader, attempt) in list(self._dials.items()):
            # One that is stopped does not answer, and its kernel accepts.
            if is_replaced(view, leader):
                del self._dials[shard]
                attempt.give_up()
        for shard in list(self._wanted):
            self._try(shard)

    def epoch_elsewhere(self, shard: int) -> int:
        """Of a shard's leader, the epoch under which it was linked last; 0: it is on this node, or there was none."""
        leader = maybe_leader(self._view, shard)
        return 0 if leader is not None and leader.is_here else self._linked.get(shard, (0, ""))[0]

    # Dialling

    def _try(self, shard: int, *, is_direct: bool = False) -> None:
        if shard in self._dials:
            return
        leader = maybe_leader(self._view, shard)
        if leader is None or not leader.host:
            self._try_later()
            return
        assert self._view is not None
        greeting = Greeting("bus", self._view.cluster, self._view.node, shard, self._epoch(), sender=self._index)
        try:
            user = DialUser(
                partial(self._connection, shard), partial(self._taken, leader), partial(self._failed, leader)
            )
            options = SocketOptions(STREAM_BYTES, CUT_SECONDS)
            attempt = self.ways.dial(self._view, leader, DialOpening(greeting), user, options, is_direct=is_direct)
            self._dials[shard] = leader, attempt
        except OSError as fault:
            self._failed(leader, fault.strerror or str(fault))

    def _connection(self, shard: int, sock: socket.socket) -> Connection:
        return Connection(self._pump(), sock, f"shard {shard}", OUTBOX_BYTES_MAX)

    def _taken(self, leader: LeaderAddress, connection: Connection, rest: bytes) -> None:
        _, attempt = self._dials.pop(leader.shard)
        epoch = attempt.epoch
        if is_replaced(self._view, leader._replace(epoch=epoch)):
            connection.close()
            self._try_later()
            return
        self._wanted.discard(leader.shard)
        self._pump().forget(connection)
        self._made(leader.shard, epoch, leader.node, connection.sock, rest)
        if attempt.is_detour:
            self._events.tell("shard.detoured", shard=leader.shard, node=leader.node)
            self._detoured[leader.shard] = attempt
            self._try_directly_later(leader.shard)

    def _try_directly_later(self, shard: int) -> None:
        """A link goes by another node: have it go directly when that works again, unless it was made anew before."""
        detour = self._detoured[shard]

        def try_directly() -> None:
            if self._detoured.get(shard) is detour:
                self._try(shard, is_direct=True)

        self._timers.later(DIRECT_AGAIN_SECONDS, try_directly)

    def _failed(self, leader: LeaderAddress, why: str) -> None:
        self._dials.pop(leader.shard, None)
        if leader.shard in self._detoured:
            self._try_directly_later(leader.shard)
        self._try_later()

    def _try_later(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._timers.later(RETRY_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._is_waiting = False
        for shard in list(self._wanted):
            self._try(shard)

    # Accepting

    def take(self, caller: Caller) -> None:
        """The taker of links that leaders of shards of higher index have dialled."""
        greeting = caller.greeting
        seen = epoch_of(self._view, greeting.sender), leader_of(self._view, greeting.sender)
        known, node = max(seen, self._linked.get(greeting.sender, (0, "")))
        if greeting.sender <= self._index:
            caller.refuse(f"shard {self._index} dials shard {greeting.sender}")
        elif greeting.epoch < known and greeting.node != node:
            caller.refuse(f"shard {greeting.sender} has a leader of epoch {known}")
        else:
            caller.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STREAM_BYTES)
            caller.answer_taken(self._epoch())
            self._made(greeting.sender, greeting.epoch, greeting.node, caller.sock, caller.rest)

    def _made(self, shard: int, epoch: int, node: str, sock: socket.socket, rest: bytes) -> None:
        self._linked[shard] = (epoch, node)
        self._detoured.pop(shard, None)
        self._attach(shard, sock, rest)
