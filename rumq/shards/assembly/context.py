"""What a shard is built from: which one it is, its settings, and the world around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rumq.loop.fault_guard import ShardEvents
from rumq.loop.scheduler import TimerQueue, system_time
from rumq.net.pump import Pump
from rumq.net.sockets.fd_passing import FdPassing
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import OPEN, ListenerPolicy
from rumq.shards.bus.dialers import Dialer
from rumq.shards.retention.export_positions import ExportPositions
from rumq.shards.stats.sys_publisher import SysStatus
from rumq.shards.turn.turn import Turn
from rumq.shards.write_path.worker_threads import Pool, Worker

if TYPE_CHECKING:  # a broker alone needs nothing of a cluster
    from rumq.shards.replication.follower_links import Connect
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
    pack_bytes_per_second: int = 0
    exports: ExportPositions | None = None
    status: SysStatus | None = None
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
    stage_seconds: float = 0.0  # as of `Stages`
    connect: Callable[[Any], Connect] | None = None  # of a pump, to followers
