"""Assembly of what the operator sees and orders, and of the start from what an earlier run has left."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.admin.handlers import handlers_of
from rumq.shards.admin.kept_values import KeptValues
from rumq.shards.admin.listings.listings import ClientListing, TopicListing, TopicRates
from rumq.shards.admin.queries.parts import (
    AdminClients,
    AdminLog,
    AdminLoop,
    AdminParts,
    AdminReads,
    AdminReplays,
    AdminTraffic,
)
from rumq.shards.admin.queries.status import StatusQuery
from rumq.shards.admin.questions import AdminQueries, TopicReaders
from rumq.shards.admin.standing_orders import StandingOrders
from rumq.shards.admin.tracing import Tracing
from rumq.shards.assembly.base import Base
from rumq.shards.assembly.clients import ClientParts
from rumq.shards.assembly.cluster import ClusterParts
from rumq.shards.assembly.delivery import DeliveryParts
from rumq.shards.assembly.driver import Driver
from rumq.shards.assembly.retention import RetentionParts
from rumq.shards.assembly.sessions import SessionParts
from rumq.shards.assembly.write_path import WriteParts
from rumq.shards.recovery.late_shards import LateShards
from rumq.shards.recovery.restore import Restorer
from rumq.shards.recovery.startup import Startup
from rumq.shards.retention.disk_space import DiskSpace
from rumq.shards.retention.segment_removal import SegmentRemover
from rumq.shards.stats.consumer_lag import ConsumerLag, LagAlarm
from rumq.shards.stats.counters import CountedShard, Counters
from rumq.shards.stats.session_lag import SessionLag
from rumq.shards.stats.sys_publisher import SysPublisher


@dataclass(frozen=True, slots=True)
class BuiltParts:
    """All that was built before."""

    base: Base
    sessions: SessionParts
    driver: Driver
    writing: WriteParts
    cluster: ClusterParts
    delivery: DeliveryParts
    retention: RetentionParts
    clients: ClientParts


@dataclass(frozen=True, slots=True)
class OperationParts:
    """status: what is published under $SYS; None: nothing"""

    removal: SegmentRemover
    disk: DiskSpace
    consumers: ConsumerLag
    topic_rates: TopicRates
    status: SysPublisher | None
    admin: AdminQueries
    restorer: Restorer
    startup: Startup
    kept: KeptValues


def build_operation(parts: BuiltParts) -> OperationParts:
    base, sessions = parts.base, parts.sessions
    clock, timers = base.clock, base.timers
    lag = SessionLag(base.router.feeds, clock)
    consumers = ConsumerLag(sessions.registry, lag, clock, timers, LagAlarm(base.events))
    topic_rates = TopicRates(base.store, clock, timers)
    counted = CountedShard(
        base.context.index, base.incarnation, base.store, base.router, sessions.registry, base.totals,
        base.drop_counters,
    )  # fmt: skip
    status = status_of(parts, counted)
    listing = ClientListing(sessions.registry, consumers, base.drop_counters, clock, timers)
    known = admin_parts_of(parts, counted, consumers)
    orders = StandingOrders(
        counted.index, known.loop, known.clients.gate, Tracing(counted, known.loop), sessions.journal, known.log.commit
    )
    replication = parts.writing.replication
    kept = KeptValues(known.loop, sessions.journal, known.log.commit, parts.cluster.reads)
    base.late.standing.bind(lambda: chain(orders.in_force(), kept.all()))

    def restore_standing(state: ReplayedState, is_for_later: bool) -> None:
        orders.restore(state.orders.values(), is_for_later)
        kept.restore(state.kept)

    restorer = Restorer(
        base.store, base.router, sessions.registry, sessions.journal, clock, base.lifecycle, base.context.limits,
        restore_standing,
    )  # fmt: skip
    histograms = {
        "publish_ack": sessions.acks.waits, "publish_delivery": parts.delivery.fan_out.ages,
        "log_write": parts.writing.commit.writes, "turn": parts.driver.turn.durations,
        **({} if replication is None else {"replicated": replication.acknowledged}),
    }  # fmt: skip
    disk, admission = parts.retention.disk, parts.writing.admission
    about = StatusQuery(counted, clock, disk.statistics, lambda: admission.is_full)
    topic_listing = TopicListing(base.store, topic_rates, timers)
    handlers = handlers_of(known, orders, about, listing, topic_listing, histograms)
    admin = AdminQueries(about, TopicReaders(base.context.policies), handlers)
    return OperationParts(
        parts.retention.removal, disk, consumers, topic_rates, status, admin, restorer, startup_of(parts, restorer),
        kept,
    )  # fmt: skip


def counters_of(parts: BuiltParts, counted: CountedShard) -> Counters:
    admission, topics = parts.writing.admission, parts.sessions.topics
    return Counters(
        counted, parts.base.timers, lambda: parts.driver.pump,
        lambda: admission.refused + sum(topics.refused.values()),
    )  # fmt: skip


def status_of(parts: BuiltParts, counted: CountedShard) -> SysPublisher | None:
    base, settings = parts.base, parts.base.context.status
    if settings is None:
        base.late.tally.bind(lambda tally: None)
        return None
    status = SysPublisher(
        counters_of(parts, counted), base.store.partitions[-1], parts.cluster.peers, base.gathered.commands,
        base.timers, base.clock, parts.retention.disk.statistics, settings,
    )  # fmt: skip
    base.late.tally.bind(status.received)
    return status


def admin_parts_of(parts: BuiltParts, counted: CountedShard, consumers: ConsumerLag) -> AdminParts:
    base, writing, cluster, retention = parts.base, parts.writing, parts.cluster, parts.retention
    context, turn, pump, copies = base.context, parts.driver.turn, parts.driver.pump, cluster.copy_reads
    replication, logins = writing.replication, parts.clients.logins
    return AdminParts(
        counted,
        context.count,
        AdminLoop(base.clock, base.timers, base.events, base.lifecycle),
        AdminClients(
            parts.clients.access_gate, context.policies, lambda: logins.connections_max, base.events.refused
        ),
        AdminLog(
            writing.admission, writing.commit, retention.removal, retention.bounds, context.exports,
            base.workers.reader,
        ),
        AdminReplays(base.gathered.commands, parts.sessions.recorder, turn.appender.settle),
        AdminReads(cluster.reads, consumers, parts.delivery.losses.pending),
        AdminTraffic(
            pump, counters_of(parts, counted), parts.driver.tracer,
            lambda: cluster.peers.bytes_out + pump.bus_bytes_out,
            lambda: copies.bytes if copies is not None else 0, retention.disk.statistics,
        ),
        replication.term_row if replication is not None else None,
    )  # fmt: skip


def startup_of(parts: BuiltParts, restorer: Restorer) -> Startup:
    base, cluster, replication = parts.base, parts.cluster, parts.writing.replication
    late = LateShards(
        base.context.missing_seconds, cluster.peers.others, base.router, parts.sessions.registry.sessions,
        parts.clients.undecided, base.clock, base.timers, base.events,
    )  # fmt: skip
    return Startup(
        base.store, cluster.peers, cluster.interest, cluster.queries, restorer, late,
        parts.driver.turn.steps.effects.carry_out,
        *([] if replication is None else [lambda: replication.is_open]),
    )  # fmt: skip
