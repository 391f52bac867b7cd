"""How patient a replica is with a silent leader: more so after leaders that lasted for a short time only. Sans-IO.

On a machine with too much to do each new leader is late with its beats as well, and is replaced before it has served
anybody. So patience doubles with each term that ended early, up to STRETCH_MAX, and is as before once one has lasted.
A leader whose process has ended is not waited for in any case. R14, docs/explanation/replication.md."""

from __future__ import annotations

from math import inf

from rumq.cluster.control.records import HANDED_OVER, ShardRecord

EARLY_SECONDS = 5.0  # a term that ended sooner counts as short: elections back off
STRETCH_MAX = 4.0


class ElectionBackoff:
    """stretch: what patience is multiplied by"""

    def __init__(self) -> None:
        self.stretch = 1.0
        self._leader = ""
        self._epoch = 0
        self._began_at = -inf

    def seen(self, record: ShardRecord, now: float) -> None:
        """The record of the shard, as it is now; it may be an old one, or the same."""
        if record.epoch <= self._epoch or not record.leader:
            return
        is_known, is_planned = bool(self._leader), record.claim.startswith(HANDED_OVER)
        if record.leader != self._leader and is_known and not is_planned:
            is_early = now - self._began_at < EARLY_SECONDS
            self.stretch = min(2 * self.stretch, STRETCH_MAX) if is_early else 1.0
        if record.leader != self._leader:
            self._began_at = now
        self._leader, self._epoch = record.leader, record.epoch

    def calm(self, now: float) -> None:
        """The leader was heard: one that has lasted is as good as any."""
        if self.stretch > 1.0 and now - self._began_at >= EARLY_SECONDS:
            self.stretch = 1.0
