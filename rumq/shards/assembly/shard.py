"""One shard, put together from its parts, group by group: only this folder knows all of them.

The command, resharding and every test build a shard here. A group is given those that were built before it. Calls that
go round in a circle are in `late_calls`; what ends a turn is connected last. Settings that change while the broker runs
are attributes of the part that they belong to (`rumq.process.shard.reload`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from commitlog.log.store import Store
from router.shard import ShardRouter
from rumq.loop.fault_guard import ShardEvents
from rumq.loop.scheduler import Lifecycle, ShardClock, TimerQueue
from rumq.shards.assembly.base import build_base
from rumq.shards.assembly.clients import ClientParts, build_clients
from rumq.shards.assembly.cluster import ClusterParts, build_cluster
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.delivery import DeliveryParts, build_delivery
from rumq.shards.assembly.driver import build_driver
from rumq.shards.assembly.operation import BuiltParts, OperationParts, build_operation
from rumq.shards.assembly.retention import build_retention
from rumq.shards.assembly.sessions import build_sessions
from rumq.shards.assembly.write_path import WriteParts, build_write_path
from rumq.shards.housekeeping import Housekeeping
from rumq.shards.turn.turn import StagesInOrder, Turn


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard as it is used from outside, and by tests. pump: as the platform makes it"""

    index: int
    store: Store
    clock: ShardClock
    timers: TimerQueue
    events: ShardEvents
    lifecycle: Lifecycle
    router: ShardRouter
    turn: Turn
    pump: Any
    writing: WriteParts
    cluster: ClusterParts
    delivery: DeliveryParts
    clients: ClientParts
    operation: OperationParts

    def stop(self) -> None:
        """End the threads."""
        self.writing.workers.writer.stop()
        self.writing.workers.reader.stop()
        self.clients.auth_pool.stop()
        if self.writing.replication is not None:
            self.writing.replication.close()


def build_shard(store: Store, context: ShardContext, platform: Platform) -> Shard:
    """A shard over an open store; what an earlier run left is restored by its owner."""
    base = build_base(store, context, platform)
    sessions = build_sessions(base)
    driver = build_driver(base, sessions)
    writing = build_write_path(base, sessions, driver)
    cluster = build_cluster(base, sessions, driver, writing)
    delivery = build_delivery(base, sessions, driver, cluster)
    retention = build_retention(base, sessions, writing, cluster, delivery)
    clients = build_clients(base, sessions, driver, writing, cluster, delivery)
    parts = BuiltParts(base, sessions, driver, writing, cluster, delivery, retention, clients)
    operation = build_operation(parts)
    base.late.limits.bind(lambda: clients.broker.limits)
    base.late.say_all.bind(cluster.peers.say_all)
    base.late.leave_behind.bind(delivery.removal_losses.leave_behind)
    assert not base.late.unbound()
    connect_turn(parts)
    return Shard(
        context.index, store, base.clock, base.timers, base.events, base.lifecycle, base.router, driver.turn,
        driver.pump, writing, cluster, delivery, clients, operation,
    )  # fmt: skip


def connect_turn(parts: BuiltParts) -> None:
    """Say what ends a turn."""
    base, writing, registry, turn = parts.base, parts.writing, parts.sessions.registry, parts.driver.turn
    housekeeping = Housekeeping(
        base.clock, base.timers, base.events, parts.clients.broker, registry, parts.retention.removal,
        turn.steps.step,
    )  # fmt: skip
    # The journal's entries are appended before groups are taken: with those that acknowledgements wait for.
    # What they write is sent to followers before the pump sends.
    replication = writing.replication
    copying = () if replication is None else (replication,)
    journal, commit, backpressure = parts.sessions.journal, writing.commit, writing.backpressure
    stages = StagesInOrder(
        timed=(housekeeping,),
        each=(parts.retention.disk, journal, writing.probe, commit, *copying, backpressure, writing.retained_quota),
        again=(journal, commit, *copying, backpressure),
        deadlines=(commit, backpressure),
    )
    turn.stages.connect(stages)
    turn.connect(parts.delivery.retained, parts.cluster.stage)
