"""For how long a replica has not heard its leader, and when that is long enough to take office. Sans-IO. R14, R15"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication.majority_lease import HOLD_SECONDS
from rumq.cluster.replication.standby.election_backoff import ElectionBackoff

PATIENCE_SECONDS = (HOLD_SECONDS, 0.9)  # a leader silent for so long may be gone; chosen anew for each wait


class LeaderSilence:
    """try_at: the next attempt to take office, if nothing is heard. Times are monotonic seconds"""

    def __init__(self, patience: Callable[[], float], now: float, *, has_promised: bool) -> None:
        """patience: draws from PATIENCE_SECONDS; has_promised: a run before this one has"""
        self._patience = patience
        # R15: a run before this one may have answered a beat just now.
        self._began_at = self._heard_at = now if has_promised else -inf
        self._elections = ElectionBackoff()
        self.try_at = now + patience()
        self._is_eager = True  # a leader that is not named, or was this node, is not waited for

    def hears_leader(self, now: float) -> bool:
        return now - self._heard_at < PATIENCE_SECONDS[0] * self._elections.stretch

    @property
    def held_until(self) -> float:
        """Until then the leader may hold the lease of the majority by this replica's answer."""
        return self._heard_at + HOLD_SECONDS

    def heard(self, now: float) -> None:
        self._elections.calm(now)
        wait = self._patience() * self._elections.stretch
        self._heard_at, self.try_at, self._is_eager = now, now + wait, False

    def seen(self, record: ShardRecord, now: float) -> None:
        """The record of the shard."""
        self._elections.seen(record, now)

    def was_itself(self, *, in_this_epoch: bool) -> None:
        """The record names this node, of a claim that was given up, or of a run before: nobody leads."""
        self._is_eager = True
        if self._heard_at == self._began_at and in_this_epoch:
            self._heard_at = -inf  # whom the run before has heard last was itself

    def ended(self, now: float) -> None:
        """The leader's process is gone: no patience is needed."""
        self._heard_at, self.try_at = -inf, now

    def is_due(self, now: float, *, is_free: bool) -> bool:
        """Whether to try to take office now; the next attempt is later then. is_free: the record names nobody else"""
        if now < self.try_at and not (self._is_eager and is_free):
            return False
        self._is_eager = False
        self.try_at = now + self._patience() / 2
        return True
