"""The broker as one client's connection sees it: `BrokerPort`, put together from the parts of the shard."""
# compiled: warm

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from rumq.loop.fault_guard import ShardEvents
from rumq.loop.scheduler import ShardClock, TimerQueue
from rumq.session.connection.pending_acks import AckTracker
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import OPEN, ListenerPolicy
from rumq.session.handshake.handshake import Handshake
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.ports.turn_view import TurnView
from rumq.session.protocol import authorization
from rumq.session.protocol.connected import Connected
from rumq.session.state.keep_alive import KeepAliveMonitor
from rumq.session.state.registry import Registry
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.clients.client_delivery import ClientDelivery
from rumq.shards.clients.logins import Logins
from rumq.shards.write_path.publish_gate import PublishGate


@dataclass(frozen=True, slots=True)
class ClientRecords:
    """What a shard knows of its clients."""

    registry: Registry
    journal: JournalRecorder
    keep_alive: KeepAliveMonitor
    totals: ShardTotals


class Ports(NamedTuple):
    """What clients log in, publish and receive by."""

    logins: Logins
    publishing: PublishGate
    delivery: ClientDelivery


class Broker:
    """welcomed: connections, so far"""

    def __init__(
        self, clock: ShardClock, timers: TimerQueue, events: ShardEvents, records: ClientRecords, ports: Ports,
        acks: AckTracker, limits: Limits,
    ) -> None:  # fmt: skip
        self.limits = limits
        self.welcomed = 0
        self._records = records
        self.registry, self.keep_alive_monitor = records.registry, records.keep_alive
        self.clock, self.acks = clock, acks
        self.later, self.next_turn = timers.later, timers.next_turn
        self.event, self.crashed = events.of_client, events.crashed
        self.logins, self.publishing, self.delivery = ports
        self.turn_view = TurnView(clock, self.publishing.batches, self.publishing.backpressure)

    @property
    def journal(self) -> JournalRecorder:
        return self._records.journal

    @property
    def shard_totals(self) -> ShardTotals:
        return self._records.totals

    def welcome(self, transport: Any, policy: ListenerPolicy = OPEN) -> Handshake:
        """The protocol of a new connection."""
        handshake = Handshake(self, transport, policy)
        self.keep_alive_monitor.add(handshake, self.clock.monotonic + handshake.client.limits.connect_seconds_max)
        self.logins.enter(transport)
        self.welcomed += 1
        self.shard_totals.sockets += 1
        return handshake

    def permit_again(self) -> None:
        """Rules have changed: hold every client that is here to them."""
        self.delivery.settle()
        for session in list(self.registry.sessions.values()):
            link = session.link
            if isinstance(link, Connected):
                authorization.find_permit(link.client, session.client_id)
                authorization.recheck_subscriptions(link.client)
