"""Assembly of what serves clients: who may log in, and the broker as a client's connection sees it."""

from __future__ import annotations

from dataclasses import dataclass

from rumq.session.state.keep_alive import KeepAliveMonitor
from rumq.session.state.registry import Registry
from rumq.shards.assembly.base import Base
from rumq.shards.assembly.cluster import ClusterParts
from rumq.shards.assembly.delivery import DeliveryParts
from rumq.shards.assembly.driver import Driver
from rumq.shards.assembly.sessions import SessionParts
from rumq.shards.assembly.write_path import WriteParts
from rumq.shards.clients.access_gate import AccessGate
from rumq.shards.clients.auth_pool import AuthPool
from rumq.shards.clients.broker import Broker, ClientRecords, Ports
from rumq.shards.clients.client_delivery import ClientDelivery
from rumq.shards.clients.logins import Logins
from rumq.shards.recovery.journal_writer import JournalWriter
from rumq.shards.recovery.undecided import Undecided
from rumq.shards.write_path.publish_gate import PublishGate


@dataclass(frozen=True, slots=True)
class ClientParts:
    """undecided: QoS 2 messages that a missing shard may have"""

    registry: Registry
    journal: JournalWriter
    auth_pool: AuthPool
    access_gate: AccessGate
    logins: Logins
    undecided: Undecided
    broker: Broker


def build_clients(
    base: Base, sessions: SessionParts, driver: Driver, writing: WriteParts, cluster: ClusterParts,
    delivery: DeliveryParts,
) -> ClientParts:  # fmt: skip
    clock, timers, events = base.clock, base.timers, base.events
    auth_pool = AuthPool(driver.pump.watch, timers.later, lambda: clock.monotonic)
    access_gate = AccessGate(clock)
    logins = Logins(auth_pool, driver.pump, base.placement, clock, events, access_gate, base.totals)
    undecided = Undecided(sessions.recorder, timers, events)
    publishing = PublishGate(
        base.store, base.gathered.batches, writing.topics, writing.admission, writing.retained_quota,
        writing.backpressure, sessions.budget, undecided,
    )  # fmt: skip
    receiving = ClientDelivery(
        base.gathered, driver.turn.appender.settle, delivery.redelivery.go_on, cluster.reads,
        cluster.interest if base.fd_passing is not None else None,
    )  # fmt: skip
    records = ClientRecords(sessions.registry, sessions.recorder, KeepAliveMonitor(), base.totals)
    ports = Ports(logins, publishing, receiving)
    broker = Broker(clock, timers, events, records, ports, sessions.acks, base.context.limits)
    return ClientParts(sessions.registry, sessions.journal, auth_pool, access_gate, logins, undecided, broker)
