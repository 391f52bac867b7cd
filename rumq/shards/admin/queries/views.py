"""What a shard is made of: its process, listeners, partitions, segments, exports.

Clients are counted some a turn; everything else is short."""

from __future__ import annotations

import os
from collections import Counter

from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.admin.operations import UNKNOWN
from rumq.shards.admin.listings.listings import Answer, Later
from rumq.shards.admin.listings.partition_row import partition_row
from rumq.shards.admin.listings.survey import Survey
from rumq.shards.admin.queries.parts import AdminParts
from rumq.shards.admin.queries.status import memory_bytes

SEGMENTS_MAX = q.ROWS_MAX


class Views:
    def __init__(self, parts: AdminParts) -> None:
        self._counted, self._loop, self._clients, self._log = parts.counted, parts.loop, parts.clients, parts.log
        self._pump, self._term = parts.traffic.pump, parts.term
        self._started = parts.loop.clock.monotonic
        self._survey = Survey(parts.counted.registry, parts.loop.timers)

    def ping(self, _: q.Nothing) -> Answer:
        return {"shards": 1}

    def shards(self, _: q.Nothing) -> Later:
        def counted(connected: Counter[int]) -> Answer:
            return {"shards": [self._shard_row(connected.total())]}

        return self._survey.ask(counted)

    def _shard_row(self, connected: int) -> r.ShardRow:
        shard, lifecycle = self._counted, self._loop.lifecycle
        own = shard.store.own
        return r.ShardRow(
            shard=shard.index, pid=os.getpid(), ready=lifecycle.is_restored and not lifecycle.stop_phase,
            accepting=self.is_accepting(),
            draining=self._clients.gate.is_draining,
            uptime_seconds=round(self._loop.clock.monotonic - self._started, 1),
            memory_bytes=memory_bytes(), connected=connected, sessions=len(shard.registry),
            retained=len(shard.router.retained),
            topics=sum(len(each.topic_names) for each in own), log_bytes=sum(each.segments.bytes for each in own),
            undelivered=shard.drop_counters.total(), handed_over=shard.totals.handed_over,
            taken_over=shard.totals.taken_over, turns=self._pump.turns,
        )  # fmt: skip

    def is_accepting(self) -> bool:
        """Whether messages are accepted in every partition of this shard."""
        return not self._log.admission.is_full and not any(p.offline for p in self._counted.store.own)

    def listeners(self, _: q.Nothing) -> Later:
        def counted(connected: Counter[int]) -> Answer:
            limits = self._clients.connections_max()
            rows = [
                r.ListenerRow(
                    listener=policy.index, name=policy.name, mount_point=policy.mount_point,
                    connections_max=limits.get(policy.index, 0), connected=connected[policy.index],
                )
                for policy in self._clients.policies
            ]  # fmt: skip
            return {"listeners": rows}

        return self._survey.ask(counted)

    def partitions(self, _: q.Nothing) -> dict[str, list[r.PartitionRow]]:
        return {"partitions": [partition_row(each, self._counted.index) for each in self._counted.store.own]}

    def segments(self, asked: q.Segments) -> dict[str, list[r.SegmentRow] | int]:
        wanted = [
            each
            for each in self._counted.store.own
            if asked.stream in (None, each.stream) and asked.partition in (None, each.number)
        ]
        found = [(each, segment) for each in wanted for segment in each.segments.files]
        is_named = asked.stream is not None or asked.partition is not None
        found.sort(key=lambda pair: -pair[1].base_lsn)
        until = min(asked.offset + asked.limit, SEGMENTS_MAX)
        rows = [
            r.SegmentRow(
                stream=each.stream, partition=each.number, file=os.path.basename(segment.path),
                base_lsn=segment.base_lsn, end_lsn=segment.end_lsn, bytes=segment.disk_bytes,
                first_time_us=segment.first_ts, sealed=segment.sealed, indexed=segment.indexed,
            )
            for each, segment in found[:until]
        ]  # fmt: skip
        answer: dict[str, list[r.SegmentRow] | int] = {"segments": rows, "left_out": len(found) - len(rows)}
        return answer if wanted or not is_named else {**answer, UNKNOWN: True}

    def exports(self, _: q.Nothing) -> dict[str, list[r.ExportRow]]:
        """As of the last reading of the markers, which this has read again."""
        exports = self._log.exports
        rows = []
        for each in self._counted.store.own if exports is not None else ():
            assert exports is not None
            exported = exports.unexported_lsn(each, self._log.reader)
            if exported is None:
                continue
            sealed = max((s.end_lsn or 0 for s in each.segments.files if s.sealed), default=each.first_lsn)
            rows.append(
                r.ExportRow(
                    stream=each.stream, partition=each.number, exported_lsn=exported, sealed_lsn=sealed,
                    behind_records=max(0, sealed - max(exported, each.first_lsn)),
                )
            )  # fmt: skip
        return {"exports": rows}

    def bans(self, _: q.Nothing) -> dict[str, list[r.BanRow]]:
        rows = [
            r.BanRow(kind=kind, name=name, seconds=round(seconds, 1), refused=refused)
            for kind, name, seconds, refused in self._clients.gate.bans()
        ]
        return {"bans": rows}

    def cluster(self, _: q.Nothing) -> Answer:
        """Of a broker alone. In a cluster the node's agent answers: `rumq.cluster.admin`."""
        return {"enabled": False}

    def terms(self, _: q.Nothing) -> Answer:
        return {"terms": [] if self._term is None else [self._term()]}
