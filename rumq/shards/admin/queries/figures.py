"""The figures of a shard for /metrics: totals as they are, gauges as of the last count of its sessions.

A scrape costs what it reads: sessions are counted some a turn, and the more there are, the more rarely."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from itertools import islice

from rumq.admin import requests as q
from rumq.admin.figures import HistogramFigures, LaggingClient, ShardFigures
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
from rumq.version import VERSION

GROUPS_MAX, GROUPS_TOLD = 1_000, 20  # looked at for a scrape, and told of
NEVER_SECONDS = 365 * 86_400.0
SESSIONS_A_SECOND = 2_000  # counted for scrapes, at most


class Figures:
    def __init__(self, parts: AdminParts, views: Views, histograms: dict[str, Histogram]) -> None:
        self._parts, self._views, self._histograms = parts, views, histograms
        self._started = parts.clock.monotonic
        self._tally: m.Tally | None = None
        self._listeners: dict[str, int] = {}
        self._counted_at = float("-inf")
        self._waiting: list[Done] = []

    def metrics(self, _: q.Nothing, done: Done) -> None:
        p = self._parts
        seconds = max(1.0, len(p.registry) / SESSIONS_A_SECOND)
        if self._tally is not None and p.clock.monotonic - self._counted_at < seconds:
            done({"shards": [self._shard(self._tally)]})
            return
        self._waiting.append(done)
        if len(self._waiting) == 1:
            p.counters.count(self._counted)

    def _counted(self, tally: m.Tally) -> None:
        self._tally, self._counted_at = tally, self._parts.clock.monotonic

        def surveyed(connected: Counter[int]) -> dict[str, object]:
            self._listeners = self._by_listener(lambda policy: connected[policy.index])
            return {}

        Survey(self._parts.registry, self._parts.timers).ask(surveyed)(lambda _: self._answer(tally))

    def _answer(self, tally: m.Tally) -> None:
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done({"shards": [self._shard(tally)]})

    def _by_listener(self, value: Callable[[ListenerPolicy], int]) -> dict[str, int]:
        """By name; two may have the same, as any free port."""
        found: Counter[str] = Counter()
        for policy in self._parts.policies:
            found[policy.name] += value(policy)
        return dict(found)

    def _disk(self) -> dict[str, float]:
        """Of the file system of the log. A disk that never fills is said to be full in a year."""
        disk = self._parts.disk() if self._parts.disk is not None else None
        if disk is None:
            return {
                "disk_free_bytes": 0,
                "disk_bytes": 0,
                "disk_wanted_bytes": 0,
                "disk_full_seconds": NEVER_SECONDS,
            }
        seconds = disk.seconds_to_full
        return {
            "disk_free_bytes": disk.free_bytes or 0, "disk_bytes": disk.total_bytes or 0,
            "disk_wanted_bytes": disk.free_wanted,
            "disk_full_seconds": NEVER_SECONDS if seconds is None else min(NEVER_SECONDS, seconds),
        }  # fmt: skip

    def _groups(self) -> dict[str, int]:
        """Records that shared groups whose home is here have not handed out, of those that are farthest behind."""
        router, found = self._parts.router, Counter[str]()
        for share in islice(router.sharing.shares.values(), GROUPS_MAX):
            if share.is_here:  # by its name: rules may forbid who reads metrics to know the filter
                name = share.key.removesuffix(share.topic_filter).strip("/").removeprefix("$share/")
                found[name] = max(found[name], group_lag(share, router.feeds))
        return dict(found.most_common(GROUPS_TOLD))

    def _shard(self, tally: m.Tally) -> ShardFigures:
        p = self._parts
        counts, standing, totals = tally.counts, tally.standing, p.counted.totals
        lag = p.lag.totals
        own = p.store.own
        disk = p.commit.submitted_bytes
        return ShardFigures(
            shard=p.index,
            incarnation=p.counted.incarnation,
            counted_seconds_ago=p.clock.monotonic - self._counted_at,
            counters={
                "packets_received": counts.packets_in, "packets_sent": counts.packets_out,
                "messages_published": counts.published, "messages_delivered": counts.delivered,
                "messages_refused": counts.refused, "published_bytes": totals.published_bytes,
                "received_bytes": counts.bytes_in, "sent_bytes": counts.bytes_out,
                "logins": totals.connections, "sockets": totals.sockets, "sessions_expired": counts.expired,
                "handed_over": totals.handed_over, "taken_over": totals.taken_over, "turns": p.pump.turns,
                "log_written_bytes": disk,
                "bus_sent_bytes": p.bus_bytes(), "copy_read_bytes": p.copy_bytes(), "cpu_seconds": time.process_time(),
                "traces": p.tracer.traces, "traces_over_rate": p.tracer.over,
            },
            gauges={
                "connected": standing.connected, "sessions": standing.sessions,
                "subscriptions": standing.subscriptions, "shared_subscriptions": standing.shared,
                "retained_messages": len(p.router.retained), "retained_bytes": p.router.retained.bytes,
                "memory_bytes": memory_bytes(), "uptime_seconds": p.clock.monotonic - self._started,
                "ready": int(p.lifecycle.is_restored and not p.lifecycle.stop_phase),
                "stop_phase": p.lifecycle.stop_phase, "lag_seconds_max": lag.oldest_seconds, **self._disk(),
                "accepting": int(self._views.is_accepting()),
                "draining": int(p.gate.is_draining), "lag_records": lag.records,
                "lag_records_max": lag.records_max, "lagging_sessions": lag.sessions,
                "bans": len(p.gate.bans()),
            },
            listeners=self._listeners,
            listener_received=self._by_listener(lambda policy: policy.bytes_in),
            listener_sent=self._by_listener(lambda policy: policy.bytes_out),
            listener_delayed=self._by_listener(lambda policy: policy.arrivals.delayed),
            listener_refused=self._by_listener(lambda policy: policy.arrivals.refused),
            refused=dict(p.refused),
            groups=self._groups(),
            build={VERSION: 1},
            undelivered={why: p.counted.drop_counters.total(why) for why in REASONS},
            histograms={
                name: HistogramFigures(counts=list(each.counts), seconds=each.seconds)
                for name, each in self._histograms.items()
            },
            partitions=[partition_row(each, p.index) for each in own],
            lagging=[LaggingClient(client_id=client_id, records=records) for records, client_id in lag.farthest],
            exports={
                f"{row.stream}/{row.partition}": row.behind_records
                for row in self._views.exports(q.Nothing())["exports"]
            },
            term=p.term() if p.term is not None else None,
        )  # fmt: skip
