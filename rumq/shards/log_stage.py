"""What the log needs at the end of a turn, as one stage: entries of the journal, groups, free space, backpressure.

The journal's entries are appended before groups are taken: with those that acknowledgements wait for. What is not due
is not called: a turn of one message asks for little more than a clock and a few numbers."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable

from rumq.loop.scheduler import ShardClock
from rumq.shards.recovery.journal_writer import JournalWriter
from rumq.shards.retention.disk_space import DiskSpace
from rumq.shards.write_path.backpressure import Backpressure
from rumq.shards.write_path.free_space import FreeSpaceProbe
from rumq.shards.write_path.group_commit import GroupCommit
from rumq.shards.write_path.retained_quota import RetainedQuota


class LogStage:
    """copy: sends to followers what the groups have written, before the pump sends; None on a node alone"""

    def __init__(
        self, clock: ShardClock, journal: JournalWriter, commit: GroupCommit, probe: FreeSpaceProbe, disk: DiskSpace,
        backpressure: Backpressure, quota: RetainedQuota, copy: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._clock, self._journal, self._commit = clock, journal, commit
        self._probe, self._disk = probe, disk
        self._backpressure, self._quota, self._copy = backpressure, quota, copy

    def end_turn(self) -> None:
        now, commit, probe = self._clock.monotonic, self._commit, self._probe
        if probe.latest is not None:
            self._disk.look()
        if self._journal.has_work(now):
            self._journal.end_turn()
        if probe.is_due(now, commit.submitted_bytes):
            probe.end_turn()
        commit.end_turn()
        if self._copy is not None:
            self._copy()
        self._backpressure.end_turn()
        self._quota.end_turn()

    def end_second_step(self) -> None:
        """Behind a second step of the same turn: what that has given to do and does not wait."""
        if self._journal.has_work(self._clock.monotonic):
            self._journal.end_turn()
        self._commit.end_turn()
        if self._copy is not None:
            self._copy()
        self._backpressure.end_second_step()
