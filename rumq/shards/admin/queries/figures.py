"""The figures of a shard for /metrics: totals as they are, gauges as of the last count of its sessions.

A scrape costs what it reads: sessions are counted some a turn, and the more there are, the more rarely."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from rumq.admin import requests as q
from rumq.admin.figures import HistogramFigures, LaggingClient, ShardFigures
from rumq.loop.ports import Clock, Timers
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.state.drop_counters import REASONS
from rumq.session.state.histogram import Histogram
from rumq.shards.admin.listings.listings import Done
from rumq.shards.admin.listings.partition_row import partition_row
from rumq.shards.admin.listings.survey import Survey
from rumq.shards.admin.queries.groups import group_lag
from rumq.shards.admin.queries.parts import AdminParts
from rumq.shards.admin.queries.status import memory_bytes
from rumq.shards.admin.queries.views import Views
from rumq.shards.bus import messages as m
from rumq.shards.stats.counters import Counters
from rumq.version import VERSION

GROUPS_MAX, GROUPS_TOLD = 1_000, 20  # shared groups that a scrape looks at, and those that it reports
NEVER_SECONDS = 365 * 86_400.0
SESSIONS_A_SECOND = 2_000  # that scrapes may have counted at most


class SessionCount(NamedTuple):
    """tally: of all sessions; at: monotonic seconds; connected: clients, by index of the listener"""

    tally: m.Tally
    at: float
    connected: Counter[int]


class SessionCensus:
    """Counts the sessions of a shard when somebody asks, the more there are the more rarely."""

    def __init__(self, counters: Counters, clock: Clock, timers: Timers) -> None:
        self._counters, self._clock, self._timers = counters, clock, timers
        self._last: SessionCount | None = None
        self._waiting: list[Callable[[SessionCount], None]] = []

    def ask(self, done: Callable[[SessionCount], None]) -> None:
        """Call back with the last count, at once if it is recent."""
        seconds = max(1.0, len(self._counters.shard.registry) / SESSIONS_A_SECOND)
        if self._last is not None and self._clock.monotonic - self._last.at < seconds:
            done(self._last)
            return
        self._waiting.append(done)
        if len(self._waiting) == 1:
            self._counters.count(self._note_tally)

    def _note_tally(self, tally: m.Tally) -> None:
        at = self._clock.monotonic

        def surveyed(connected: Counter[int]) -> dict[str, object]:
            self._last = SessionCount(tally, at, connected)
            return {}

        Survey(self._counters.shard.registry, self._timers).ask(surveyed)(lambda _: self._answer())

    def _answer(self) -> None:
        assert self._last is not None
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done(self._last)


class Figures:
    def __init__(self, parts: AdminParts, views: Views, histograms: dict[str, Histogram]) -> None:
        self._shard, self._loop, self._clients, self._log = parts.counted, parts.loop, parts.clients, parts.log
        self._traffic, self._consumers, self._term = parts.traffic, parts.reads.consumers, parts.term
        self._views, self._histograms = views, histograms
        self._started = parts.loop.clock.monotonic
        self._census = SessionCensus(parts.traffic.counters, parts.loop.clock, parts.loop.timers)

    def metrics(self, _: q.Nothing, done: Done) -> None:
        self._census.ask(lambda count: done({"shards": [self._figures(count)]}))

    def _by_listener(self, value: Callable[[ListenerPolicy], int]) -> dict[str, int]:
        """By name; two may have the same, as any free port."""
        found: Counter[str] = Counter()
        for policy in self._clients.policies:
            found[policy.name] += value(policy)
        return dict(found)

    def _disk(self) -> dict[str, float]:
        """Of the file system of the log. A disk that never fills is said to be full in a year."""
        disk = self._traffic.disk()
        seconds = disk.seconds_to_full
        return {
            "disk_free_bytes": disk.free_bytes or 0, "disk_bytes": disk.total_bytes or 0,
            "disk_wanted_bytes": disk.free_wanted,
            "disk_full_seconds": NEVER_SECONDS if seconds is None else min(NEVER_SECONDS, seconds),
        }  # fmt: skip

    def _groups(self) -> dict[str, int]:
        """Records that shared groups whose home is here have not handed out, of those that are farthest behind."""
        router, found = self._shard.router, Counter[str]()
        for share in islice(router.sharing.shares.values(), GROUPS_MAX):
            if share.is_here:  # by its name: rules may forbid who reads metrics to know the filter
                name = share.key.removesuffix(share.topic_filter).strip("/").removeprefix("$share/")
                lag = group_lag(share, router.feeds) if share in router.delivery.groups.maybe_behind else 0
                found[name] = max(found[name], lag)
        return dict(found.most_common(GROUPS_TOLD))

    def _figures(self, count: SessionCount) -> ShardFigures:
        shard, traffic, lifecycle, gate = self._shard, self._traffic, self._loop.lifecycle, self._clients.gate
        counts, standing, totals = count.tally.counts, count.tally.standing, shard.totals
        lag, retained = self._consumers.totals, shard.router.retained
        now = self._loop.clock.monotonic
        return ShardFigures(
            shard=shard.index,
            incarnation=shard.incarnation,
            counted_seconds_ago=now - count.at,
            counters={
                "packets_received": counts.packets_in, "packets_sent": counts.packets_out,
                "messages_published": counts.published, "messages_delivered": counts.delivered,
                "messages_refused": counts.refused, "published_bytes": totals.published_bytes,
                "received_bytes": counts.bytes_in, "sent_bytes": counts.bytes_out,
                "logins": totals.connections, "sockets": totals.sockets, "sessions_expired": counts.expired,
                "handed_over": totals.handed_over, "taken_over": totals.taken_over, "turns": traffic.pump.turns,
                "log_written_bytes": self._log.commit.submitted.bytes,
                "bus_sent_bytes": traffic.bus_bytes(), "copy_read_bytes": traffic.copy_bytes(),
                "cpu_seconds": time.process_time(),
                "traces": traffic.tracer.traces, "traces_over_rate": traffic.tracer.over,
            },
            gauges={
                "connected": standing.connected, "sessions": standing.sessions,
                "subscriptions": standing.subscriptions, "shared_subscriptions": standing.shared,
                "retained_messages": len(retained), "retained_bytes": retained.bytes,
                "memory_bytes": memory_bytes(), "uptime_seconds": now - self._started,
                "ready": int(lifecycle.is_restored and not lifecycle.stop_phase),
                "stop_phase": lifecycle.stop_phase, "lag_seconds_max": lag.oldest_seconds, **self._disk(),
                "accepting": int(self._views.is_accepting()),
                "draining": int(gate.is_draining), "lag_records": lag.records,
                "lag_records_max": lag.records_max, "lagging_sessions": lag.sessions,
                "bans": len(gate.bans()),
            },
            listeners=self._by_listener(lambda policy: count.connected[policy.index]),
            listener_received=self._by_listener(lambda policy: policy.bytes_in),
            listener_sent=self._by_listener(lambda policy: policy.bytes_out),
            listener_delayed=self._by_listener(lambda policy: policy.arrivals.delayed),
            listener_refused=self._by_listener(lambda policy: policy.arrivals.refused),
            refused=dict(self._clients.refused),
            groups=self._groups(),
            build={VERSION: 1},
            undelivered={why: shard.drop_counters.total(why) for why in REASONS},
            histograms={
                name: HistogramFigures(counts=list(each.counts), seconds=each.seconds)
                for name, each in self._histograms.items()
            },
            partitions=[partition_row(each, shard.index) for each in shard.store.own],
            lagging=[LaggingClient(client_id=client_id, records=records) for records, client_id in lag.farthest],
            exports={
                f"{row.stream}/{row.partition}": row.behind_records
                for row in self._views.exports(q.Nothing())["exports"]
            },
            term=self._term() if self._term is not None else None,
        )  # fmt: skip
