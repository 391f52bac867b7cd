"""Where the edge passes each client: to the process of its home shard on this node, or to the leader on another.

A client whose shard has no leader just now, or whose leader does not answer, waits WAITING_SECONDS at most, and then it
is refused, with the address of its leader's node if that one is alive. Nothing of it was handled by then, so it goes to
whoever leads the shard at last. Which shard is a client's home: `rumq.net.client_placement`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Protocol

from rumq.cluster.control.leaders import LeaderAddress, maybe_leader
from rumq.cluster.control.records import View
from rumq.cluster.edge.edge_handshake import EdgeHandshake
from rumq.loop.ports import Timers
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.net.client_placement import home_of
from rumq.net.connection import Connection
from rumq.net.connection_handover import CLIENT, KNOWN
from rumq.net.pending_logins import LoginStage, PendingLogins
from rumq.net.sockets.fd_passing import FdPassing
from rumq.session.ports.clock import Clock

WAITING_SECONDS = 10.0
WAITING_MAX = 10_000  # their bytes are bounded as those of all pending logins
CHECK_SECONDS = 0.1
# After a dial that failed, unless the view changes before. A leader that has just won is ready some 0.1 s later, and
# everybody waits for it: the first retries come soon.
RETRY_SECONDS = (0.02, 0.02, 0.05, 0.05, 0.1, 0.1, 0.2, 0.5, 1.0)


class Arrival:
    """A client whose CONNECT is here. shard: its home, None: any; data: what was read of it

    deadline: until when it may wait; retry_at: of the next dial; failures: dials that failed; is_under_way: a dial has
    begun"""

    __slots__ = ("data", "deadline", "failures", "handshake", "is_under_way", "retry_at", "shard", "why")

    def __init__(self, handshake: EdgeHandshake, shard: int | None, data: bytes, deadline: float) -> None:
        self.handshake, self.shard, self.data, self.deadline = handshake, shard, data, deadline
        self.retry_at = 0.0
        self.failures = 0
        self.is_under_way = False
        self.why = "its shard has no leader"

    @property
    def connection(self) -> Connection:
        return self.handshake.connection

    @property
    def is_gone(self) -> bool:
        return self.handshake.client.closed


class LeaderRelays(Protocol):
    """Connections to leaders on other nodes: `rumq.cluster.edge.remote_relay`."""

    def begin(
        self, leader: LeaderAddress, arrival: Arrival, taken: Callable[[], None], failed: Callable[[str], None]
    ) -> None: ...

    def view_changed(self, view: View) -> None: ...


class EdgePlacement:
    """view: the last one, None before the first; count: of the cluster's shards"""

    def __init__(
        self,
        count: int,
        doors: FdPassing,
        relays: LeaderRelays,
        pending_logins: PendingLogins,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self.count = count
        self._doors, self._relays, self._pending_logins = doors, relays, pending_logins
        self._clock, self._timers = clock, timers
        self._waiting: dict[Arrival, None] = {}
        self._is_checking = False
        self._turns = itertools.count()
        self.view: View | None = None

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def view_changed(self, view: View) -> None:
        """Pass on those that have waited for this."""
        self.view = view
        self._relays.view_changed(view)
        for arrival in list(self._waiting):
            self._go_on(arrival)

    def place(self, handshake: EdgeHandshake, data: bytes) -> None:
        """Pass a client on, now or once that is possible. data: its CONNECT and what came behind it

        raises: MqttFault if too many wait"""
        client_id = handshake.client.claimed_client_id
        shard = home_of(client_id, self.count) if client_id else None
        arrival = Arrival(handshake, shard, data, self._clock.monotonic + WAITING_SECONDS)
        leader = self._leader(arrival)
        if leader is not None and leader.is_here:
            self._hand_over(arrival, leader.shard)
            return
        if len(self._waiting) >= WAITING_MAX:
            raise MqttFault("too many wait for a leader of their shard", Reason.SERVER_UNAVAILABLE)
        arrival.connection.pause_reading()
        self._pending_logins.set_state(arrival.connection, LoginStage.OWED)
        self._waiting[arrival] = None
        self._check_later()
        self._go_on(arrival)

    def _leader(self, arrival: Arrival) -> LeaderAddress | None:
        if arrival.shard is not None:
            return maybe_leader(self.view, arrival.shard)
        # It has no client id: the shard gives it one of its own.
        leaders = [found for shard in range(self.count) if (found := maybe_leader(self.view, shard))]
        near = [each for each in leaders if each.is_here] or leaders
        return near[next(self._turns) % len(near)] if near else None

    def _hand_over(self, arrival: Arrival, shard: int) -> None:
        connection = arrival.connection
        state = connection.handover_state()
        arrival.handshake.gone()
        self._doors.give(
            shard, KNOWN if state else CLIENT, connection.hand_over(), connection.peer, state + arrival.data,
            arrival.handshake.client.policy.index,
        )  # fmt: skip
        connection.resume_reading()  # the end of a relay for TLS

    # Those that wait

    def _go_on(self, arrival: Arrival) -> None:
        if arrival.is_gone:
            self._waiting.pop(arrival, None)
            return
        if arrival.is_under_way:
            return
        leader = self._leader(arrival)
        if leader is None:
            return
        if leader.is_here:
            del self._waiting[arrival]
            self._hand_over(arrival, leader.shard)
            return
        arrival.is_under_way = True
        self._relays.begin(
            leader, arrival, lambda: self._taken(arrival), lambda why: self._failed(arrival, leader, why)
        )

    def _taken(self, arrival: Arrival) -> None:
        self._waiting.pop(arrival, None)
        arrival.handshake.gone()

    def _failed(self, arrival: Arrival, leader: LeaderAddress, why: str) -> None:
        arrival.is_under_way = False
        arrival.why = f"{leader.node} did not take it: {why}"
        if arrival.is_gone:
            self._waiting.pop(arrival, None)
            return
        if arrival.shard is not None and self._leader(arrival) != leader:  # the view has changed while it was dialled
            self._go_on(arrival)
            return
        wait = RETRY_SECONDS[min(arrival.failures, len(RETRY_SECONDS) - 1)]
        arrival.failures += 1
        arrival.retry_at = self._clock.monotonic + wait
        if wait < CHECK_SECONDS:
            self._timers.later(wait, lambda: self._retry(arrival))

    def _retry(self, arrival: Arrival) -> None:
        if arrival in self._waiting and arrival.retry_at <= self._clock.monotonic:
            self._go_on(arrival)

    def _check_later(self) -> None:
        if not self._is_checking:
            self._is_checking = True
            self._timers.later(CHECK_SECONDS, self._check)

    def _check(self) -> None:
        """Refuse those whose time is up, and dial again."""
        self._is_checking = False
        now = self._clock.monotonic
        for arrival in list(self._waiting):
            if arrival.is_gone:
                del self._waiting[arrival]
            elif arrival.deadline <= now:
                self._refuse(arrival)
            elif arrival.retry_at <= now:
                self._go_on(arrival)
        if self._waiting:
            self._check_later()

    def _refuse(self, arrival: Arrival) -> None:
        del self._waiting[arrival]
        reference = self._reference(arrival)
        fault = MqttFault(
            f"no leader took it within {WAITING_SECONDS:g} s: {arrival.why}",
            Reason.USE_ANOTHER_SERVER if reference else Reason.SERVER_UNAVAILABLE, reference,
        )  # fmt: skip
        arrival.handshake.refuse_privately(fault)

    def _reference(self, arrival: Arrival) -> str:
        """Where the client is better placed: at the node of its leader, which this one cannot reach; "" for unknown."""
        leader = self._leader(arrival)
        if self.view is None or leader is None or leader.is_here:
            return ""
        node = self.view.node_of(leader.node)
        return node.mqtt[0] if node is not None and node.mqtt else ""
