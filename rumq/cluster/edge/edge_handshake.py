"""A client's connection at the edge, from its first byte until CONNECT says whose it is. MQTT 5.0, 3.1.

The session, authentication and CONNACK are its home shard's; what is refused before that is refused here."""

from __future__ import annotations

from typing import ClassVar, Protocol, cast

from rumq.auth.identity import Certificate
from rumq.loop.fault_guard import ShardEvents
from rumq.net.connection import Connection
from rumq.net.pending_logins import LoginStage, PendingLogins
from rumq.session.connection.broker_port import BrokerPort, ClientInfo
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.handshake.first_packet import read_connect
from rumq.session.handshake.handshake import Handshake
from rumq.session.ports.clock import Clock
from rumq.session.state.keep_alive import KeepAliveMonitor


class Placing(Protocol):
    """Finds the leader of a client: `rumq.cluster.edge.placement`."""

    def place(self, handshake: EdgeHandshake, data: bytes) -> None:
        """raises: MqttFault if it cannot wait for one"""


class EdgeHandshake(Handshake):
    """The handler of a connection until a leader has taken it."""

    __slots__ = ("_placing", "connection")

    def __init__(self, broker: BrokerPort, placing: Placing, connection: Connection, policy: ListenerPolicy) -> None:
        super().__init__(broker, connection, policy)
        self._placing = placing
        self.connection = connection
        shown = connection.certificate
        if shown is not None:
            names = (*shown.dns, *shown.email, *shown.uri)
            self.client.certificate = Certificate(shown.common_name or "", shown.subject, names)

    def _receive_connect(self, data: bytearray, pos: int, end: int) -> int:
        client = self.client
        connect, _ = read_connect(client, data, pos, end)
        if connect is None:
            return pos
        client.claimed_client_id = client.policy.client_id_of(connect, client.certificate)
        self.broker.keep_alive_monitor.cancel(self)
        self._placing.place(self, bytes(data[pos:end]))
        return end

    def gone(self) -> None:
        """Its connection is another's now."""
        self.client.closed = True


class EdgeLogins:
    """The part of `LoginPort` that is asked for before CONNECT is here."""

    def __init__(self, pending_logins: PendingLogins) -> None:
        self._pending_logins = pending_logins

    def may_buffer(self, client: ClientInfo, size: int) -> bool:
        connection = cast(Connection, client.transport)
        self._pending_logins.set_state(connection, LoginStage.HEARD)
        return self._pending_logins.keep_bytes(connection, size)


class NothingPublished:
    """At the edge there are no topics."""

    topics: ClassVar[dict[bytes, int]] = {}


class EdgeBroker:
    """What a handshake asks of the broker until CONNECT is here, as a part of `BrokerPort`."""

    def __init__(self, clock: Clock, pending_logins: PendingLogins, events: ShardEvents, limits: Limits) -> None:
        self.clock, self.limits = clock, limits
        self._pending_logins = pending_logins
        self.event, self.crashed = events.of_client, events.crashed
        self.keep_alive_monitor = KeepAliveMonitor()
        self.logins, self.publishing = EdgeLogins(pending_logins), NothingPublished()

    def welcome(self, placing: Placing, connection: Connection, policy: ListenerPolicy) -> EdgeHandshake:
        """The handler of a new connection."""
        handshake = EdgeHandshake(cast(BrokerPort, self), placing, connection, policy)
        deadline = self.clock.monotonic + handshake.client.limits.connect_seconds_max
        self.keep_alive_monitor.add(handshake, deadline)
        self._pending_logins.add(connection)
        return handshake

    def end_turn(self) -> None:
        """End those that have not sent CONNECT in time."""
        if self.clock.monotonic >= self.keep_alive_monitor.next_check:
            self.keep_alive_monitor.check(self)
