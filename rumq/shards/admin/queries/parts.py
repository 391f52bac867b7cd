"""The parts of a shard that its answers to the operator read and act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from commitlog import Store
from router.readers.reader import Reader
from router.shard import ShardRouter
from rumq.admin.cluster_rows import TermRow
from rumq.loop.ports import Clock, CommandQueue, EventSink, LifecycleState, ReadPool, Timers
from rumq.loop.read_gate import ReadGate
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.registry import Registry
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
class AdminParts:
    """count: of the shards; pump: with its connections; settle: appends what was published so far
    pending: counts what readers are still to get, as `LostRanges.pending`
    term: of a leader in a cluster; None for a broker alone"""

    counted: CountedShard
    count: int
    clock: Clock
    timers: Timers
    events: EventSink
    lifecycle: LifecycleState
    commands: CommandQueue
    settle: Callable[[], None]
    pump: Any
    policies: Collection[ListenerPolicy]
    connections_max: Callable[[], dict[int, int]]
    lag: ConsumerLag
    pending: Callable[[Iterable[Reader], Callable[[Counter[str]], None], ReadBudget | None], None]
    recorder: JournalRecorder
    gate: AccessGate
    admission: WriteAdmission
    commit: GroupCommit
    removal: SegmentRemover
    bounds: RetentionBounds
    exports: ExportPositions | None
    reader: ReadPool
    counters: Counters
    tracer: Tracer
    bus_bytes: Callable[[], int]  # sent to other shards
    reads: ReadGate
    term: Callable[[], TermRow] | None = None
    copy_bytes: Callable[[], int] = lambda: 0  # read from this node's copies of other shards' partitions
    disk: Callable[[], DiskStatistics] | None = None
    refused: Mapping[str, int] = field(default_factory=dict)  # clients, by reason

    @property
    def index(self) -> int:
        return self.counted.index

    @property
    def store(self) -> Store:
        return self.counted.store

    @property
    def router(self) -> ShardRouter:
        return self.counted.router

    @property
    def registry(self) -> Registry:
        return self.counted.registry
