"""Clients between two leaders: their connections wait here, with their state, for whoever leads their shard next.

One that nobody takes in time is told where else to go, and ends. Its session stays with the shard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from rumq.cluster.connections.server_reference import maybe_reference
from rumq.cluster.control.leaders import LeaderAddress, maybe_leader
from rumq.cluster.control.records import View
from rumq.cluster.links.client_moves import MOVED
from rumq.loop.ports import Timers
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.net.connection import Connection
from rumq.net.connection_handover import HandoverState, encode_state
from rumq.net.sockets.fd_passing import FdPassing
from rumq.net.transport.relay import ClientEnd
from rumq.net.transport.stream_connection import StreamConnection
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.moves.moved_client import MovedClient, encode_moved
from rumq.session.ports.clock import Clock

WAITING_SECONDS = 10.0
RETRY_SECONDS = 0.05  # after a leader that did not take it; it is ready some 0.1 s after it has won


class Traveller:
    """The handler of a connection that waits. policy: of its listener here; is_under_way: a dial has begun"""

    is_bus = False
    client_id = None

    __slots__ = ("_gone", "closed", "deadline", "is_under_way", "moved", "policy", "transport")

    def __init__(
        self, connection: Connection, moved: MovedClient, policy: ListenerPolicy, deadline: float,
        gone: Callable[[Traveller], None],
    ) -> None:  # fmt: skip
        self.transport, self.moved, self.policy, self.deadline = connection, moved, policy, deadline
        self._gone = gone
        self.closed = self.is_under_way = False

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        return pos

    def drained(self) -> None: ...

    def lost(self, why: str) -> None:
        self.closed = True
        self._gone(self)

    def turned_away(self, why: str) -> None: ...

    def dismiss(self, reason: Reason, why: str | None = None) -> None: ...

    def end(self, *, with_will: bool = False) -> None:
        self.lost("given up")
        self.transport.close()


class TravellerRelays(Protocol):
    """`rumq.cluster.edge.remote_relay`."""

    def carry(
        self, leader: LeaderAddress, traveller: Traveller, state: bytes, data: bytes, taken: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None: ...  # fmt: skip


class Travellers:
    def __init__(self, doors: FdPassing, relays: TravellerRelays, clock: Clock, timers: Timers) -> None:
        self._doors, self._relays, self._clock, self._timers = doors, relays, clock, timers
        self._waiting: dict[Traveller, None] = {}
        self._view: View | None = None
        self._is_checking = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: Connection, moved: MovedClient, policy: ListenerPolicy) -> None:
        """A client is to go on at the next leader. connection: served by the pump, not read"""
        deadline = self._clock.monotonic + WAITING_SECONDS
        traveller = Traveller(connection, moved, policy, deadline, lambda each: self._waiting.pop(each, None))
        connection.link = traveller
        self._waiting[traveller] = None
        self._go_on(traveller)
        self._check_later()

    def view_changed(self, view: View) -> None:
        self._view = view
        for traveller in list(self._waiting):
            self._go_on(traveller)

    def _go_on(self, traveller: Traveller) -> None:
        moved = traveller.moved
        leader = maybe_leader(self._view, moved.shard)
        if traveller.is_under_way or traveller.closed or leader is None or leader.epoch <= moved.epoch:
            return
        if leader.is_here:
            del self._waiting[traveller]
            self._hand_over(traveller, leader.shard)
            return
        assert self._view is not None
        node = self._view.node_of(leader.node)
        if node is None or not node.moves:
            self._refuse(traveller)  # a node of a version that would not know what comes
            return
        traveller.is_under_way = True
        # A greeting is small: what is for the client leaves from here, what is the client's follows the greeting.
        if moved.unsent:
            traveller.transport.write(moved.unsent)
        moved = traveller.moved = msgspec.structs.replace(moved, unsent=b"")
        bare = msgspec.structs.replace(moved, unparsed=b"")
        certificate = traveller.transport.certificate
        state = encode_state(HandoverState(certificate)) + encode_moved(bare)
        self._relays.carry(
            leader, traveller, state, moved.unparsed, lambda: self._taken(traveller),
            lambda why: self._failed(traveller),
        )  # fmt: skip

    def _taken(self, traveller: Traveller) -> None:
        self._waiting.pop(traveller, None)

    def _failed(self, traveller: Traveller) -> None:
        traveller.is_under_way = False  # it is tried again by `_check`

    def _hand_over(self, traveller: Traveller, shard: int) -> None:
        connection, moved = traveller.transport, traveller.moved
        if not isinstance(connection, StreamConnection):
            waiting = b"".join([bytes(data) for data, _ in connection.unsent()])  # comes before what its state has
            moved = msgspec.structs.replace(moved, unsent=waiting + moved.unsent)
        state = connection.handover_state() or encode_state(HandoverState(connection.certificate))
        peer = connection.peer
        fd = connection.hand_over()
        self._doors.give(shard, MOVED, fd, peer, state + encode_moved(moved), traveller.policy.index)
        if isinstance(connection.link, ClientEnd):  # its layers stay here
            connection.link.greeted()
            connection.resume_reading()

    def _check_later(self) -> None:
        if not self._is_checking:
            self._is_checking = True
            self._timers.later(RETRY_SECONDS, self._check)

    def _check(self) -> None:
        self._is_checking = False
        now = self._clock.monotonic
        for traveller in list(self._waiting):
            if traveller.deadline <= now:
                self._refuse(traveller)
            else:
                self._go_on(traveller)
        if self._waiting:
            self._check_later()

    def _refuse(self, traveller: Traveller) -> None:
        connection, moved = traveller.transport, traveller.moved
        self._waiting.pop(traveller, None)
        connection.write(moved.unsent)
        if moved.version == 5:
            reference = maybe_reference(self._view, self._view.node if self._view else "", moved.client_id)
            told: Properties = {"server_reference": reference} if reference else {}
            reason = Reason.USE_ANOTHER_SERVER if reference else Reason.SERVER_BUSY
            connection.write(encode(p.Disconnect(reason, told), 5))
        traveller.end()
