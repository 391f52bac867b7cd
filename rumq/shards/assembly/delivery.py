"""Assembly of deliveries: from records, retained messages and the past to clients, and what readers lose."""

from __future__ import annotations

from dataclasses import dataclass

from router import effects as e
from rumq.session.state.drop_counters import DropCounters
from rumq.shards.assembly.base import Base
from rumq.shards.assembly.cluster import ClusterParts
from rumq.shards.assembly.driver import Driver
from rumq.shards.assembly.sessions import SessionParts
from rumq.shards.delivery.cold_reads import ColdReads
from rumq.shards.delivery.fan_out import FanOut
from rumq.shards.delivery.fan_out_cache import FanOutCache
from rumq.shards.delivery.lost_ranges import LostRanges
from rumq.shards.delivery.redelivery import Redelivery
from rumq.shards.delivery.removal_losses import RemovalLosses
from rumq.shards.delivery.replay_start import ReplayStart
from rumq.shards.delivery.retained_delivery import RetainedDelivery
from rumq.shards.turn.effect_dispatch import JournalEffects, send_replay_end


@dataclass(frozen=True, slots=True)
class DeliveryParts:
    retained: RetainedDelivery
    fan_out: FanOut
    cold_reads: ColdReads
    losses: LostRanges
    removal_losses: RemovalLosses
    replay_start: ReplayStart
    redelivery: Redelivery
    drop_counters: DropCounters


def build_delivery(base: Base, sessions: SessionParts, driver: Driver, cluster: ClusterParts) -> DeliveryParts:
    """The router's effects are given to the parts that carry them out."""
    store, router, events, timers, clock = base.store, base.router, base.events, base.timers, base.clock
    commands, reader = base.gathered.commands, base.workers.reader
    live, counters = sessions.registry.sessions, base.drop_counters
    queries, effects = cluster.queries, driver.turn.steps.effects
    cold_reads = ColdReads(store, reader, commands, events, cluster.copy_reads or queries)
    retained = RetainedDelivery(router.retained, counters, store.partitions)
    fan_out_cache = FanOutCache(router.feeds, driver.tracer)
    fan_out = FanOut(clock, commands, base.gathered.ready, events, fan_out_cache, live, counters, retained)
    losses = LostRanges(timers, events, router.feeds, cold_reads, live, counters)
    removal_losses = RemovalLosses(timers, router, live, sessions.recorder, effects, losses, queries)
    elsewhere = queries if base.fd_passing is not None else None
    replay_start = ReplayStart(store, router.retained, reader, commands, events, elsewhere)
    redelivery = Redelivery(clock, timers, commands, router.feeds, cold_reads, counters)
    journal_effects = JournalEffects(live, sessions.recorder)
    effects.deliver_by(fan_out)
    effects.handle(
        {
            e.Scatter: fan_out.scatter,
            e.DeliverRetained: fan_out.deliver_retained,
            e.CatchUpPaused: fan_out.more,
            e.ReadCold: cold_reads.carry_out,
            e.FindStart: replay_start.start,
            e.FindRetained: queries.find_retained,
            e.RecordsLost: losses.lost,
            e.Merged: journal_effects.merged,
            e.ReplayStarted: journal_effects.started,
            e.ReplayEnded: send_replay_end,
            **dict.fromkeys(
                (
                    e.ReportShareDone,
                    e.ShareBegun,
                    e.ReportShareWeight,
                    e.ConfirmShareLeft,
                    e.ReturnShare,
                    e.ReportShareReady,
                ),
                cluster.shared_groups.carry_out,
            ),
        }
    )
    return DeliveryParts(retained, fan_out, cold_reads, losses, removal_losses, replay_start, redelivery, counters)
