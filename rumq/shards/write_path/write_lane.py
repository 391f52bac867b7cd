"""What group commit knows of one partition that this shard writes: the group on its way, and when the next is due.

Times are monotonic seconds."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable
from math import inf

from commitlog.log.partition import Partition
from commitlog.write.write_group import WriteGroup
from rumq.shards.write_path.bulk_allowance import BulkAllowance

NEVER = inf


class Submitted:
    """bytes: handed to the writers of a shard so far"""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class WriteLane:
    """group: being written, None: none is; submitted_at: since when

    due_at: a group of what is pending is due, whether anyone waits for it or not; inf: nothing is pending
    mark_due_at: the watermark is to be noted on disk; inf: it is
    mark_seconds: after the last group, until then
    allowance: of bulk senders, as the groups of this lane tell
    frozen_lsn: where the log ended when the shard was frozen
    retry_at: not before that; 0: at once
    flushed, written: called on the loop with (result, fault) of a job"""

    __slots__ = (
        "allowance", "due_at", "flushed", "frozen_lsn", "group", "index", "mark_due_at", "mark_seconds", "partition",
        "retry_at", "submitted_at", "written",
    )  # fmt: skip

    def __init__(self, partition: Partition) -> None:
        self.partition, self.index = partition, partition.index
        self.allowance = BulkAllowance()
        self.group: WriteGroup | None = None
        self.frozen_lsn = 0
        self.due_at = self.mark_due_at = inf
        self.retry_at = self.submitted_at = self.mark_seconds = 0.0
        self.flushed: Callable[[object, BaseException | None], None]
        self.written: Callable[[object, BaseException | None], None]

    def is_unwritten(self) -> bool:
        """Whether something is not written that was there when the shard was frozen."""
        return self.partition.written_lsn < self.frozen_lsn

    def next_deadline(self) -> float:
        """When something is due that no thread is busy with; inf: nothing is."""
        if self.group is not None:
            return NEVER
        due_at = self.due_at if self.due_at < NEVER else self.mark_due_at
        return due_at if due_at > self.retry_at else self.retry_at
