"""What all parts of a shard stand on: its ports, its store and router, and what a turn gathers."""

from __future__ import annotations

from dataclasses import dataclass

from commitlog.log.store import Store
from router.shard import ShardRouter
from rumq.loop.fault_guard import ShardEvents
from rumq.loop.scheduler import Lifecycle, ShardClock, TimerQueue
from rumq.net.client_placement import ClientPlacement
from rumq.net.sockets.fd_passing import FdPassing
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.late_calls import LateCalls
from rumq.shards.clients.refusal_summary import RefusalSummary
from rumq.shards.turn.step_input import StepInput, empty_input
from rumq.shards.write_path.worker_threads import DiskWorkers


@dataclass(frozen=True, slots=True)
class Base:
    """fd_passing: the way to other shards, None for the only one; incarnation: of this run"""

    context: ShardContext
    platform: Platform
    store: Store
    incarnation: int
    clock: ShardClock
    timers: TimerQueue
    events: ShardEvents
    lifecycle: Lifecycle
    fd_passing: FdPassing | None
    placement: ClientPlacement
    workers: DiskWorkers
    router: ShardRouter
    gathered: StepInput
    totals: ShardTotals
    drop_counters: DropCounters
    late: LateCalls


def build_base(store: Store, context: ShardContext, platform: Platform) -> Base:
    incarnation = int.from_bytes(platform.random(7), "little") | 1
    clock = ShardClock(platform.clock)
    timers = TimerQueue(clock)
    events = ShardEvents((summary := RefusalSummary(platform.tell, timers.later)).tell, summary.refused)
    fd_passing = platform.fd_passing(timers.later, events.failed) if platform.fd_passing is not None else None
    placement = ClientPlacement(fd_passing, context.index, context.count, context.edge_door)
    workers = DiskWorkers(platform.worker("rumq-write", events.failed), platform.worker("rumq-read", events.failed))
    has_peers = fd_passing is not None
    router = ShardRouter(store.partitions, context.backlog_records_max, placement.is_here, has_peers=has_peers)
    return Base(
        context, platform, store, incarnation, clock, timers, events, Lifecycle(), fd_passing, placement, workers,
        router, empty_input(len(store.partitions)), ShardTotals(), DropCounters(), LateCalls(),
    )  # fmt: skip
