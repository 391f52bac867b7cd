"""Assembly of the way of a record to the disk, and of who may take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rumq.shards.assembly.base import Base
from rumq.shards.assembly.driver import Driver
from rumq.shards.assembly.sessions import SessionParts
from rumq.shards.bus.messages import Refusing, RetainedFull
from rumq.shards.write_path.backpressure import Backpressure
from rumq.shards.write_path.free_space import FreeSpaceProbe
from rumq.shards.write_path.group_commit import CommitOptions, GroupCommit
from rumq.shards.write_path.retained_quota import RetainedQuota
from rumq.shards.write_path.topic_registry import TopicRegistry
from rumq.shards.write_path.worker_threads import DiskWorkers
from rumq.shards.write_path.write_admission import WriteAdmission

if TYPE_CHECKING:  # a broker alone needs nothing of a cluster
    from rumq.shards.replication.replication import Replication


@dataclass(frozen=True, slots=True)
class WriteParts:
    """replication: None on a node alone"""

    workers: DiskWorkers
    topics: TopicRegistry
    admission: WriteAdmission
    retained_quota: RetainedQuota
    replication: Replication | None
    commit: GroupCommit
    backpressure: Backpressure
    probe: FreeSpaceProbe


def build_write_path(base: Base, sessions: SessionParts, driver: Driver) -> WriteParts:
    context, store, events, clock, late = base.context, base.store, base.events, base.clock, base.late
    batches, workers, acks = base.gathered.batches, base.workers, sessions.acks
    admission = WriteAdmission(
        store, batches, events, free_bytes_min=context.free_bytes_min, say=lambda *state: late.say_all(Refusing(*state))
    )
    retained_quota = RetainedQuota(
        store, base.router.retained, batches, events, lambda *state: late.say_all(RetainedFull(*state))
    )
    replication = None
    if context.term is not None:
        from rumq.shards.replication.follower_links import Network, connector
        from rumq.shards.replication.replication import Replication

        network = Network((base.platform.connect or connector)(driver.pump), driver.pump.watch)
        # Either tells the other how far it is.
        replication = Replication(
            context.term, store, lambda: commit, workers.reader, base.timers, clock, events, network
        )
    options = CommitOptions(context.linger_seconds, replication.written if replication is not None else None)
    commit = GroupCommit(store, workers, acks, admission, base.gathered.commands, clock, events, options)
    backpressure = Backpressure(
        store, base.router.feeds, commit, acks, events, clock, pending_bytes_max=context.pending_bytes_max,
        uncommitted=replication.uncommitted_bytes if replication is not None else None,
    )  # fmt: skip
    probe = FreeSpaceProbe(store, workers.reader, admission, clock, commit.submitted)
    return WriteParts(workers, sessions.topics, admission, retained_quota, replication, commit, backpressure, probe)
