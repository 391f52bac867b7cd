"""The last stage of a turn: journal entries, write groups to the disk, paused publishers."""

from __future__ import annotations

from math import inf

from rumq.shards.recovery.journal_writer import JournalWriter
from rumq.shards.turn.ports import Clock, Lifecycle
from rumq.shards.write_path.backpressure import Backpressure
from rumq.shards.write_path.free_space import FreeSpaceProbe
from rumq.shards.write_path.group_commit import GroupCommit
from rumq.shards.write_path.retained_quota import RetainedQuota


class WriteStage:
    """The last stage of a turn's end."""

    def __init__(
        self, clock: Clock, lifecycle: Lifecycle, journal: JournalWriter, commit: GroupCommit, probe: FreeSpaceProbe,
        backpressure: Backpressure, retained_quota: RetainedQuota,
    ) -> None:  # fmt: skip
        self._clock, self._lifecycle = clock, lifecycle
        self._journal, self._commit, self._probe = journal, commit, probe
        self._backpressure, self._retained_quota = backpressure, retained_quota

    def end_turn(self) -> None:
        now_us, monotonic = self._clock.now_us, self._clock.monotonic
        if self._lifecycle.is_restored:
            self._journal.flush(now_us)
            self._journal.look(now_us, monotonic)
        self._probe.look(self._commit.submitted_bytes)
        self._commit.start(now_us, monotonic, self._lifecycle.is_draining)
        self._backpressure.look()
        self._retained_quota.look()

    def next_deadline(self) -> float:
        due = self._commit.next_deadline(self._clock.monotonic)
        return inf if due is None else due
