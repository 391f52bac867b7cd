"""Notices that the control plane has lost what it knew. Sans-IO. docs/explanation/replication.md, R1"""

from __future__ import annotations

from math import inf

from rumq.cluster.replication import effects as fx

BEHIND_SECONDS = 5.0


class EpochWatch:
    """An epoch goes back only where the control plane has lost what it knew. A view that is late catches up, and one
    that was read before the control plane was out of reach says nothing."""

    def __init__(self) -> None:
        self._behind_since: float | None = None

    def maybe_alarm(self, epoch: int, promised: int, now: float, *, is_current: bool) -> fx.Alarm | None:
        """epoch: of a view; promised: the epoch on this disk; is_current: of the view"""
        if epoch >= promised or not is_current:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif self._behind_since < now - BEHIND_SECONDS:
            self._behind_since = inf  # told once
            return fx.Alarm(
                "cluster.epoch_back",
                f"the control plane says epoch {epoch}, this disk has promised {promised}: it was"
                " restored from an old copy, or is another cluster's. What the replicas know counts: whoever leads"
                " writes its record there again",
            )
        return None
