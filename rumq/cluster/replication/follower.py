"""What a leader knows of one of its replicas. Sans-IO. docs/explanation/replication.md, R4, R7 and R11."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class FollowerProgress:
    """What the leader knows of one replica. synced: by partition, of a log that is a prefix of the leader's"""

    def __init__(self) -> None:
        self.is_linked = False
        self.has_promised = False
        self.is_complete = False  # True once it was sent everything the leader had when it took office
        self.has_opened = False
        self.synced: dict[str, int] = {}
        self.acknowledged: dict[str, int] = {}  # by partition: the highest lsn it has synced in this term
        self.told: dict[str, int] = {}  # by partition: the committed lsn it was told last
        self.told_config = -1  # number of the configuration it was told last
        self.asked: Counter[str] = Counter()  # by partition, inventories that have not been answered
        self.heard_at: float | None = None
        self.is_well = True  # True if its disk lets it lead: R10
        self.forgets_since: float | None = None  # its promises may be missing, and others have not confirmed this term

    def maybe_behind(self, own: Mapping[str, int]) -> int | None:
        """How many records of the leader's log it lacks; None while it is away or not part of the term."""
        if not self.is_linked or not self.has_opened:
            return None
        return sum(end - self.synced.get(partition, 0) for partition, end in own.items())

    def has_lost(self, ends: Mapping[str, int]) -> bool:
        """Whether its copy ends before what it had acknowledged in this term. ends: by partition"""
        return any(ends.get(partition, 0) < lsn for partition, lsn in self.acknowledged.items())

    def has_all(self, ends: Mapping[str, int], committed: Mapping[str, int]) -> bool:
        """Whether it has synced what the leader had when it took office, what is committed, and what it acknowledged.

        R11: a copy that came back without it is not complete before."""
        return all(
            self.synced.get(partition, 0) >= max(end, committed[partition], self.acknowledged.get(partition, 0))
            for partition, end in ends.items()
        )
