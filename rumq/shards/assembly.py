"""One shard, put together from its parts: the only module that knows all of them.

The command, resharding and every test build a shard here. Nothing is put into a part afterwards; settings that change
while the broker runs are attributes of the part that they belong to (`rumq.cli.broker.reload`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commitlog.store import Store
from router import effects as e
from router.shard import Shard as Router
from rumq.net.pump import Pump
from rumq.session.connection.listener_policy import OPEN, ListenerPolicy
from rumq.session.connection.pending_acks import AckTracker
from rumq.session.flow_control.limits import Limits
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.keep_alive import KeepAliveMonitor
from rumq.session.state.registry import Registry
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.admin.handlers import handlers_of
from rumq.shards.admin.parts import AdminParts
from rumq.shards.bus.messages import Refusing, RetainedFull
from rumq.shards.bus.peers import Peers, PeerStage
from rumq.shards.bus_assembly import build_bus
from rumq.shards.delivery.cold_reads import ColdReads
from rumq.shards.delivery.fan_out import FanOut
from rumq.shards.delivery.fan_out_cache import FanOutCache
from rumq.shards.delivery.lost_ranges import LostRanges
from rumq.shards.delivery.redelivery import Redelivery
from rumq.shards.delivery.removal_losses import RemovalLosses
from rumq.shards.delivery.replay_start import ReplayStart
from rumq.shards.delivery.retained_delivery import RetainedDelivery
from rumq.shards.delivery.will_publisher import WillPublisher
from rumq.shards.links.dialers import Dialer, PairDialer
from rumq.shards.orders.access_gate import AccessGate
from rumq.shards.orders.standing_orders import StandingOrders
from rumq.shards.processes.client_placement import ClientPlacement
from rumq.shards.processes.fd_passing import FdPassing
from rumq.shards.recovery.journal_writer import JournalWriter
from rumq.shards.recovery.late_shards import LateShards
from rumq.shards.recovery.restore import Restorer
from rumq.shards.recovery.startup import Startup
from rumq.shards.recovery.undecided import Undecided
from rumq.shards.retention.bounds import RetentionBounds
from rumq.shards.retention.disk_space import DiskSpace, SpaceSettings
from rumq.shards.retention.export_positions import ExportPositions
from rumq.shards.retention.segment_removal import SegmentRemover
from rumq.shards.stats.admin_listings import ClientListing, TopicListing, TopicRates
from rumq.shards.stats.admin_queries import AdminQueries, StatusQuery, TopicReaders
from rumq.shards.stats.consumer_lag import ConsumerLag
from rumq.shards.stats.counters import CountedShard, Counters
from rumq.shards.stats.refusal_summary import RefusalSummary
from rumq.shards.stats.survey import Survey
from rumq.shards.stats.sys_publisher import Status, SysPublisher
from rumq.shards.tracing.traced_publishers import TracedPublishers
from rumq.shards.turn.auth_pool import AuthPool
from rumq.shards.turn.broker import Broker, ClientRecords, Gates
from rumq.shards.turn.effect_dispatch import JournalEffects
from rumq.shards.turn.fault_guard import ShardEvents
from rumq.shards.turn.housekeeping import Housekeeping
from rumq.shards.turn.logins import Logins
from rumq.shards.turn.read_gate import ReadGate
from rumq.shards.turn.scheduler import Lifecycle, ShardClock, TimerQueue, system_time
from rumq.shards.turn.turn import Turn
from rumq.shards.write_path.backpressure import Backpressure
from rumq.shards.write_path.free_space import FreeSpaceProbe
from rumq.shards.write_path.group_commit import CommitOptions, GroupCommit
from rumq.shards.write_path.new_topic_budget import NewTopicBudget
from rumq.shards.write_path.publish_gate import PublishGate
from rumq.shards.write_path.retained_quota import RetainedQuota
from rumq.shards.write_path.topic_registry import TopicRegistry
from rumq.shards.write_path.worker_threads import DiskWorkers, Pool, Worker
from rumq.shards.write_path.write_admission import WriteAdmission
from rumq.tracing.chance import Chance
from rumq.tracing.tracer import Tracer

if TYPE_CHECKING:  # a broker alone needs nothing of a cluster
    from rumq.shards.replication.follower_links import Connect
    from rumq.shards.replication.replication import Replication
    from rumq.shards.replication.term import Term

Failed = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ShardContext:
    """Which shard this is, and its settings. index, count: of the shards; policies: of every listener

    edge_door: in a cluster, the door through which clients go that live elsewhere; term: of this leader
    missing_seconds: for how long other shards are waited for at the start; None: until all are there"""

    index: int = 0
    count: int = 1
    limits: Limits = field(default_factory=Limits)
    policies: Collection[ListenerPolicy] = (OPEN,)
    linger_seconds: float = 0.005
    pending_bytes_max: int = 64 << 20
    backlog_records_max: int = 0
    free_bytes_min: int = 0
    free_percent_min: float = 0
    wanted_free_percent_min: float = 0
    retain_for_sessions_bytes_max: int = 0
    exports: ExportPositions | None = None
    status: Status | None = None
    edge_door: int | None = None
    term: Term | None = None
    trace_sample_every: int = 0
    traces_per_second_max: int = 100
    missing_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Platform:
    """The world around a shard. tell: takes its events; clock: gives (µs since 1970, monotonic seconds)

    pump: is given what it turns; worker: makes threads that may wait for disks; fd_passing: the way to other shards,
    None for the only one; dialer: links to them, None for socket pairs"""

    tell: Callable[..., None]
    pump: Callable[[Turn], Any] = Pump
    clock: Callable[[], tuple[int, float]] = system_time
    worker: Callable[[str, Failed], Pool] = Worker
    fd_passing: Callable[[Callable[[float, Callable[[], None]], None], Failed], FdPassing] | None = None
    dialer: Callable[[Callable[[], Pump], TimerQueue, ShardEvents], Dialer] | None = None
    random: Callable[[int], bytes] = os.urandom
    stage_seconds: float = 0.0  # as of `Turn`
    connect: Callable[[Any], Connect] | None = None  # of a pump, to followers


@dataclass(frozen=True, slots=True)
class Shard:
    """The parts of a shard that are used from outside, and by tests."""

    index: int
    store: Store
    clock: ShardClock
    timers: TimerQueue
    events: ShardEvents
    lifecycle: Lifecycle
    turn: Turn
    pump: Any
    broker: Broker
    logins: Logins
    placement: ClientPlacement
    auth_pool: AuthPool
    router: Router
    workers: DiskWorkers
    journal: JournalWriter
    commit: GroupCommit
    backpressure: Backpressure
    admission: WriteAdmission
    retained_quota: RetainedQuota
    topics: TopicRegistry
    replay_start: ReplayStart
    losses: LostRanges
    disk: DiskSpace
    removal: SegmentRemover
    peers: Peers
    fd_passing: FdPassing | None
    restorer: Restorer
    startup: Startup
    consumers: ConsumerLag
    topic_rates: TopicRates
    status: SysPublisher | None
    admin: AdminQueries
    replication: Replication | None

    def stop(self) -> None:
        """End the threads."""
        self.workers.writer.stop()
        self.workers.reader.stop()
        self.auth_pool.stop()
        if self.replication is not None:
            self.replication.close()


def build_shard(store: Store, context: ShardContext, platform: Platform) -> Shard:
    """A shard over an open store; what an earlier run left is restored by its owner."""
    assert store.internal is not None
    incarnation = int.from_bytes(platform.random(7), "little") | 1

    # Ports
    clock = ShardClock(platform.clock)
    timers = TimerQueue(clock)
    events = ShardEvents((summary := RefusalSummary(platform.tell, timers.later)).tell, summary.refused)
    lifecycle = Lifecycle()
    fd_passing = platform.fd_passing(timers.later, events.failed) if platform.fd_passing is not None else None
    placement = ClientPlacement(fd_passing, context.index, context.count, context.edge_door)
    dialer: Dialer | None = PairDialer(fd_passing, context.index) if fd_passing is not None else None
    if platform.dialer is not None:
        dialer = platform.dialer(lambda: pump, timers, events)
    workers = DiskWorkers(
        platform.worker("rumq-write", events.failed), platform.worker("rumq-read", events.failed)
    )

    # The router and its turn
    has_peers = fd_passing is not None
    router = Router(store.partitions, context.backlog_records_max, placement.is_here, has_peers=has_peers)
    totals = ShardTotals()
    drop_counters = DropCounters()
    publishers = TracedPublishers(store, lambda: acks, lambda: registry)
    tracer = Tracer(context.index, publishers.find, lambda: platform.clock()[0], Chance(platform.random))
    turn = Turn(clock, timers, events, store, router, totals, tracer)
    turn.stage_seconds = platform.stage_seconds
    commands, pump = turn.commands, platform.pump(turn)
    for worker in workers:
        pump.watch(worker.fd, worker.finish)

    # Sessions and their journal
    topics = TopicRegistry(store, events)
    budget = NewTopicBudget(router.groups, clock, lambda: broker.limits)
    wills = WillPublisher(events, context.policies, store, turn.batches, topics, budget.charge_will)
    recorder = JournalRecorder()
    registry = Registry(
        commands, lambda *w: events.alone("will", lambda: wills.publish_will(*w)), recorder, store.release_publishers
    )  # fmt: skip
    sessions = registry.sessions
    journal = JournalWriter(
        store.internal, store.partitions, recorder, router, sessions.get, clock, lifecycle, lambda: orders.in_force(),
    )  # fmt: skip

    # Writing
    admission = WriteAdmission(
        store, turn.batches, events, free_bytes_min=context.free_bytes_min,
        say=lambda *state: peers.say_all(Refusing(*state)),
    )  # fmt: skip
    retained_quota = RetainedQuota(
        store, router.retained, turn.batches, events, lambda *state: peers.say_all(RetainedFull(*state))
    )
    sources = [partition.ack_source for partition in [*store.partitions, store.internal]]
    acks = AckTracker(sources, journal.flush, clock)
    replication = None
    if context.term is not None:
        from rumq.shards.replication.follower_links import Network, connector
        from rumq.shards.replication.replication import Replication

        network = Network((platform.connect or connector)(pump), pump.watch)
        replication = Replication(
            context.term, store, lambda: commit, workers.reader, timers, clock, events, network
        )
    options = CommitOptions(context.linger_seconds, replication.written if replication is not None else None)
    commit = GroupCommit(store, workers, acks, admission, commands, clock, events, options)
    backpressure = Backpressure(
        store, router.feeds, commit, acks, events, pending_bytes_max=context.pending_bytes_max,
        uncommitted=replication.uncommitted_bytes if replication is not None else None,
    )  # fmt: skip
    probe = FreeSpaceProbe(store, workers.reader, admission, clock, commit)

    # A leader that does not hold the lease of the majority has perhaps been replaced.
    reads = ReadGate(lambda: replication is None or replication.core.holds_lease(platform.clock()[1]), timers)

    # Other shards
    peers, interest, queries, shared_groups = build_bus(
        clock=clock, timers=timers, commands=commands, events=events, guard=events, placement=placement,
        reader=workers.reader, store=store, router=router, sessions=sessions, journal=journal, totals=totals,
        topics=topics, admission=admission, quota=retained_quota, urgent=commit.urgent, acknowledged=acks.release,
        leave_behind=lambda *removed: removal_losses.leave_behind(*removed), dialer=dialer, pump=lambda: pump,
        is_draining=lambda: commit.is_draining,
        tally=lambda tally: status.received(tally) if status is not None else None, count=context.count,
        incarnation=incarnation, tracer=tracer, reads=reads,
    )  # fmt: skip

    # Delivery
    copy_reads = None
    if context.term is not None:
        from rumq.shards.delivery.copy_reads import CopiesHere, CopyReads

        copies = CopiesHere(store.files, store.root, context.term.epoch_elsewhere)
        copy_reads = CopyReads(store.partitions, copies, workers.reader, queries, clock, events)
    cold_reads = ColdReads(store, workers.reader, commands, events, copy_reads or queries)
    retained = RetainedDelivery(router.retained, drop_counters, store.partitions)
    fan_out_cache = FanOutCache(router.feeds, tracer)
    fan_out = FanOut(clock, commands, turn.ready, events, fan_out_cache, sessions, drop_counters, retained)
    losses = LostRanges(timers, events, router.feeds, cold_reads, sessions, drop_counters)
    removal_losses = RemovalLosses(timers, router, sessions, recorder, turn.effects, losses, queries)
    elsewhere = queries if has_peers else None
    replay_start = ReplayStart(store, router.retained, workers.reader, commands, events, elsewhere)
    redelivery = Redelivery(clock, timers, commands, router.feeds, cold_reads, drop_counters)
    journal_effects = JournalEffects(sessions, recorder)
    turn.effects.handle(
        {
            e.Deliver: fan_out.deliver,
            e.Scatter: fan_out.scatter,
            e.DeliverRetained: fan_out.deliver_retained,
            e.CatchUpPaused: fan_out.more,
            e.ReadCold: cold_reads.carry_out,
            e.FindStart: replay_start.start,
            e.FindRetained: queries.find_retained,
            e.RecordsLost: losses.lost,
            e.Merged: journal_effects.merged,
            e.ReplayStarted: journal_effects.started,
            **dict.fromkeys(
                (e.ShareDone, e.ShareBegun, e.ShareWeight, e.ShareLeft, e.ShareBack, e.ShareReady),
                shared_groups.carry_out,
            ),
        }
    )

    # Recovery
    restorer = Restorer(
        store, router, registry, journal, clock, lifecycle, context.limits, lambda *given: orders.restore(*given),
    )  # fmt: skip
    undecided = Undecided(recorder, timers, events)
    late = LateShards(context.missing_seconds, peers.others, router, sessions, undecided, clock, events)
    startup = Startup(
        store, peers, interest, queries, restorer, late, turn.effects.carry_out,
        *([] if replication is None else [lambda: replication.is_open]),
    )  # fmt: skip

    # Retention
    bounds = RetentionBounds(journal, peers, context.exports, workers.reader)
    removal = SegmentRemover(
        store, bounds, clock, workers.writer, events, sessions_bytes_max=context.retain_for_sessions_bytes_max,
        roll=commit.roll, before_removal=removal_losses.before_removal,
    )  # fmt: skip
    space_settings = SpaceSettings(
        context.free_percent_min, context.wanted_free_percent_min, is_first=context.index == 0
    )
    disk = DiskSpace(store, bounds, peers, probe, removal, clock, events, space_settings)

    # Statistics
    consumers = ConsumerLag(registry, router.feeds, clock, timers, events)
    topic_rates = TopicRates(store, clock, timers)
    counted = CountedShard(context.index, incarnation, store, router, registry, totals, drop_counters)

    def new_counters() -> Counters:
        return Counters(
            counted, timers, lambda: pump, lambda: admission.refused + sum(topics.refused.values())
        )

    status = None
    if context.status is not None:
        status = SysPublisher(
            new_counters(),
            store.partitions[-1],
            peers,
            commands,
            timers,
            clock,
            disk.statistics,
            context.status,
        )

    # Clients
    auth_pool = AuthPool(pump.watch, timers.later, lambda: clock.monotonic)
    access_gate = AccessGate(clock)
    logins = Logins(auth_pool, pump, placement, clock, events, access_gate)
    gate = PublishGate(store, turn.batches, topics, admission, retained_quota, backpressure, budget)
    records = ClientRecords(
        registry, recorder, 1 << len(store.partitions), KeepAliveMonitor(), drop_counters, totals
    )
    broker = Broker(
        turn, records, logins, Gates(gate, reads, undecided), acks, redelivery, interest if has_peers else None,
        context.limits,
    )  # fmt: skip

    # The operator
    listing = ClientListing(registry, consumers, drop_counters, clock, timers)
    parts = AdminParts(
        counted, context.count, clock, timers, events, lifecycle, commands, turn.settle, pump, context.policies,
        lambda: logins.connections_max, consumers, losses.pending, recorder, access_gate, admission, commit, removal,
        bounds, context.exports, workers.reader, new_counters(), tracer,
        lambda: peers.bytes_out + pump.bus_bytes_out, reads, replication.term_row if replication is not None else None,
        lambda: copy_reads.bytes if copy_reads is not None else 0, disk.statistics, events.refused,
    )  # fmt: skip
    orders = StandingOrders(parts, journal)
    histograms = {
        "publish_ack": acks.waits, "publish_delivery": fan_out.ages, "log_write": commit.writes,
        "turn": turn.durations, **({} if replication is None else {"replicated": replication.acknowledged}),
    }  # fmt: skip
    admin = AdminQueries(
        StatusQuery(counted, clock, disk.statistics, lambda: admission.is_full), listing,
        TopicListing(store, topic_rates, timers), registry, drop_counters, losses.pending, events,
        Survey(registry, timers), TopicReaders(context.policies), handlers_of(parts, orders, listing, histograms),
    )  # fmt: skip

    housekeeping = Housekeeping(clock, timers, events, broker, registry, removal, disk, turn.step)
    # The journal's entries are appended before groups are taken: with those that acknowledgements wait for.
    # What they write is sent to followers before the pump sends.
    stages = (
        housekeeping.end_turn, journal.end_turn, probe.end_turn, commit.end_turn,
        *([] if replication is None else [replication.end_turn]), backpressure.end_turn, retained_quota.end_turn,
    )  # fmt: skip
    peer_stage = PeerStage(peers, interest, shared_groups, fd_passing) if fd_passing is not None else None
    turn.trace(context.trace_sample_every, context.traces_per_second_max)
    turn.connect(acks, retained, stages, (housekeeping.next_deadline, commit.next_deadline), peer_stage)
    return Shard(
        index=context.index, store=store, clock=clock, timers=timers, events=events, lifecycle=lifecycle, turn=turn,
        pump=pump, broker=broker, logins=logins, placement=placement, auth_pool=auth_pool, router=router,
        workers=workers, journal=journal, commit=commit, backpressure=backpressure, admission=admission,
        retained_quota=retained_quota, losses=losses, topics=topics, replay_start=replay_start, disk=disk,
        removal=removal, peers=peers, fd_passing=fd_passing,
        restorer=restorer, startup=startup, consumers=consumers, topic_rates=topic_rates, status=status,
        admin=admin, replication=replication,
    )  # fmt: skip
