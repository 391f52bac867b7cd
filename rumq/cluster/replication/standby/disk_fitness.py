"""Whether the disk of a replica is well enough to lead. Sans-IO. R10, docs/explanation/replication.md"""

from __future__ import annotations

from collections.abc import Callable

from rumq.cluster.replication import effects as fx

UNWELL_PATIENCE_SECONDS = 3.0  # extra election timeout of a replica whose disk is full or slow


class DiskFitness:
    """is_well: whether it is, as far as is known"""

    def __init__(self, is_well: Callable[[], bool], can_lead: Callable[[], bool], effects: list[fx.Effect]) -> None:
        """can_lead: whether it is well and was tried just now"""
        self.is_well, self._can_lead, self._effects = is_well, can_lead, effects
        self._unwell_since: float | None = None

    def may_lead(self, now: float) -> bool:
        """A disk that is full, fails or is slow is left to others, as long as they may want to lead."""
        if self._can_lead():
            self._unwell_since = None
            return True
        if self._unwell_since is None:
            self._unwell_since = now
            self._effects.append(
                fx.Alarm("cluster.disk_unwell", "the disk is full, slow or fails: this node lets others lead")
            )
        return now - self._unwell_since >= UNWELL_PATIENCE_SECONDS

    def others_lead(self) -> None:
        """A leader was heard: the wait begins anew when it is gone."""
        self._unwell_since = None
