"""What a shard's answers to the operator read and act on, in groups: a handler takes those that it uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from router.readers.reader import Reader
from rumq.admin.cluster_rows import TermRow
from rumq.loop.ports import Clock, CommandQueue, EventSink, LifecycleState, ReadPool, Timers
from rumq.loop.read_gate import ReadGate
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.journal.recorder import JournalRecorder
from rumq.shards.clients.access_gate import AccessGate
from rumq.shards.delivery.lost_ranges import ReadBudget
from rumq.shards.retention.bounds import RetentionBounds
from rumq.shards.retention.disk_space import DiskStatistics
from rumq.shards.retention.export_positions import ExportPositions
from rumq.shards.retention.segment_removal import SegmentRemover
from rumq.shards.stats.consumer_lag import ConsumerLag
from rumq.shards.stats.counters import CountedShard, Counters
from rumq.shards.write_path.group_commit import GroupCommit
from rumq.shards.write_path.write_admission import WriteAdmission
from rumq.tracing.tracer import Tracer


@dataclass(frozen=True, slots=True)
class AdminLoop:
    """What every handler may need: the time, later turns, events, and whether the shard starts or stops."""

    clock: Clock
    timers: Timers
    events: EventSink
    lifecycle: LifecycleState


@dataclass(frozen=True, slots=True)
class AdminClients:
    """Who may connect. connections_max: by listener; refused: clients, by reason"""

    gate: AccessGate
    policies: Collection[ListenerPolicy]
    connections_max: Callable[[], dict[int, int]]
    refused: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AdminLog:
    """How the partitions of the shard are written and removed. exports: None without a directory of exports"""

    admission: WriteAdmission
    commit: GroupCommit
    removal: SegmentRemover
    bounds: RetentionBounds
    exports: ExportPositions | None
    reader: ReadPool


@dataclass(frozen=True, slots=True)
class AdminReplays:
    """What a replay that the operator orders goes through. settle: appends what was published so far"""

    commands: CommandQueue
    recorder: JournalRecorder
    settle: Callable[[], None]


@dataclass(frozen=True, slots=True)
class AdminReads:
    """pending: counts what readers are still to get, as `LostRanges.pending`"""

    gate: ReadGate
    consumers: ConsumerLag
    pending: Callable[[Iterable[Reader], Callable[[Counter[str]], None], ReadBudget | None], None]


@dataclass(frozen=True, slots=True)
class AdminTraffic:
    """What passes through the shard, for figures. pump: with its connections; bus_bytes: sent to other shards;
    copy_bytes: read from this node's copies of other shards' partitions"""

    pump: Any
    counters: Counters
    tracer: Tracer
    bus_bytes: Callable[[], int]
    copy_bytes: Callable[[], int]
    disk: Callable[[], DiskStatistics]


@dataclass(frozen=True, slots=True)
class AdminParts:
    """shards: how many the broker has; term: of a leader in a cluster, None for a broker alone"""

    counted: CountedShard
    shards: int
    loop: AdminLoop
    clients: AdminClients
    log: AdminLog
    replays: AdminReplays
    reads: AdminReads
    traffic: AdminTraffic
    term: Callable[[], TermRow] | None
