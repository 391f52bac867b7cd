"""Links of the bus between leaders, which may be on any node: a TCP connection for each two shards.

A link belongs to an epoch of the other shard. When the view names another leader, the link to the old one is ended, and
one from a leader of an older epoch is refused."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial

from rumq.cluster.connections.dial import Dial, dial
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.leaders import Leader, epoch_of, maybe_leader
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Greeting
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.shards.links.cluster_listener import Caller
from rumq.shards.links.dialers import Attach
from rumq.shards.processes.fd_passing import STREAM_BYTES
from rumq.shards.turn.ports import EventSink, Timers

RETRY_SECONDS = 0.1
OUTBOX_BYTES_MAX = 1 << 16  # until the link is taken


class ClusterLinks:
    """The `Dialer` of a leader. index, epoch: of its shard, as it leads it"""

    def __init__(
        self, index: int, epoch: int, addresses: HostAddresses, pump: Callable[[], Pump], timers: Timers,
        events: EventSink, tls: NodeTls | None = None,
    ) -> None:  # fmt: skip
        """tls: None for plain bytes between nodes"""
        self._tls = tls
        self._index, self._epoch, self._addresses = index, epoch, addresses
        self._pump, self._timers, self._events = pump, timers, events
        self._attach: Attach
        self._end: Callable[[int], None]
        self._view: View | None = None
        self._epochs: dict[int, int] = {}  # of the links that were made last, by shard
        self._wanted: set[int] = set()  # shards to be dialled
        self._dials: dict[int, Dial] = {}
        self._dialled: dict[int, Leader] = {}  # whom these go to
        self._is_waiting = False

    def begin(self, attach: Attach, end: Callable[[int], None]) -> None:
        self._attach, self._end = attach, end

    def dial(self, shard: int) -> None:
        self._wanted.add(shard)
        self._try(shard)

    def view_changed(self, view: View) -> None:
        """Leave those that lead no more, and dial their successors."""
        self._view = view
        for shard, epoch in list(self._epochs.items()):
            if epoch_of(view, shard) > epoch:
                del self._epochs[shard]
                self._end(shard)
        for shard, leader in list(self._dialled.items()):
            # One that is stopped does not answer, and its kernel accepts.
            if shard in self._dials and epoch_of(view, shard) > leader.epoch:
                self._dials.pop(shard).give_up()
        for shard in list(self._wanted):
            self._try(shard)

    # Dialling

    def _try(self, shard: int) -> None:
        if shard in self._dials:
            return
        leader = maybe_leader(self._view, shard)
        address = self._addresses.maybe_find(leader.host) if leader is not None and leader.host else None
        if leader is None or address is None:
            self._try_later()
            return
        assert self._view is not None
        greeting = Greeting(
            "bus", self._view.cluster, self._view.node, shard, self._epoch, sender=self._index
        )
        try:
            self._dialled[shard] = leader
            self._dials[shard] = dial(
                self._pump(), (address, leader.port), greeting, b"", b"",
                make=partial(self._connection, shard), taken=partial(self._taken, leader),
                failed=partial(self._failed, leader), later=self._timers.later, send_bytes=STREAM_BYTES, tls=self._tls,
            )  # fmt: skip
        except OSError as fault:
            self._failed(leader, fault.strerror or str(fault))

    def _connection(self, shard: int, sock: socket.socket) -> Connection:
        return Connection(self._pump(), sock, f"shard {shard}", OUTBOX_BYTES_MAX)

    def _taken(self, leader: Leader, connection: Connection, rest: bytes) -> None:
        epoch = self._dials.pop(leader.shard).epoch
        if epoch_of(self._view, leader.shard) > epoch:
            connection.close()
            self._try_later()
            return
        self._wanted.discard(leader.shard)
        self._pump().forget(connection)
        self._made(leader.shard, epoch, connection.sock, rest)

    def _failed(self, leader: Leader, why: str) -> None:
        self._dials.pop(leader.shard, None)
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
        known = max(epoch_of(self._view, greeting.sender), self._epochs.get(greeting.sender, 0))
        if greeting.sender <= self._index:
            caller.refuse(f"shard {self._index} dials shard {greeting.sender}")
        elif greeting.epoch < known:
            caller.refuse(f"shard {greeting.sender} has a leader of epoch {known}")
        else:
            caller.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STREAM_BYTES)
            caller.answer_taken(self._epoch)
            self._made(greeting.sender, greeting.epoch, caller.sock, caller.rest)

    def _made(self, shard: int, epoch: int, sock: socket.socket, rest: bytes) -> None:
        self._epochs[shard] = epoch
        self._attach(shard, sock, rest)
